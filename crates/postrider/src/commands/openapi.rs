//! `openapi`: the API's description, as `/openapi.json` gives it. It asks no server.

use crate::exit::Exit;
use crate::output;

pub fn run() -> Exit {
    output::print_json(postrider_web::openapi_document());
    Exit::Done
}
