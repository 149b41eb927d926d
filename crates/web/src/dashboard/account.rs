//! One's own password. It must not know how a password is kept.

use askama::Template;
use axum::response::Response;
use http::StatusCode;
use postrider_core::Secret;
use postrider_core::person::PASSWORD_CHARS_MIN;
use postrider_engine::{LogInRefused, Refusal};

use super::answer::page_with;
use super::fault::Fault;
use super::form::Form;
use super::frame::Frame;
use super::log_in::refusal_of;
use super::visit::Visit;

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    /// `None`: logged in with a key, which has no password.
    role: Option<&'static str>,
    wrong: Option<String>,
    chars_min: usize,
}

pub async fn show(visit: Visit) -> Result<Response, Fault> {
    page(&visit, StatusCode::OK, None).await
}

async fn page(visit: &Visit, status: StatusCode, wrong: Option<String>) -> Result<Response, Fault> {
    let frame = visit.frame("Your account", "account").await?;
    let role = visit.session.user.as_ref().map(|holder| holder.user.role.as_str());
    page_with(status, &AccountPage { frame, role, wrong, chars_min: PASSWORD_CHARS_MIN })
}

pub async fn change_password(visit: Visit, form: Form) -> Result<Response, Fault> {
    let Some(holder) = &visit.session.user else {
        return Err(Fault::forbidden("You are logged in with a key, which has no password."));
    };
    let secret = |name: &str| Secret::new(form.get(name).unwrap_or_default());
    if form.get("password") != form.get("again") {
        return page(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some("The two new passwords differ.".to_owned())).await;
    }
    let engine = visit.board.engine();
    let changed =
        engine.change_own_password(holder, secret("current"), secret("password"), visit.session.address).await;
    match changed {
        Ok(()) => Ok(visit.done("/ui/account", "Your password is changed. All your other sessions have ended.")),
        Err(LogInRefused::Wrong) => {
            page(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some("The current password is wrong.".to_owned())).await
        }
        Err(LogInRefused::Refused(Refusal::Invalid(errors))) => {
            let wrong = errors.first().map(|error| format!("The new password must be {}.", error.allowed));
            page(&visit, StatusCode::UNPROCESSABLE_ENTITY, wrong).await
        }
        Err(refused) => {
            let (status, wrong, _) = refusal_of(refused)?;
            page(&visit, status, Some(wrong)).await
        }
    }
}
