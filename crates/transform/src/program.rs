//! jq itself: a program is compiled, and run on one JSON body to give exactly one value.
//!
//! It must not know of processes: whoever calls this must be able to be ended.

use std::collections::HashMap;
use std::io::{self, Write};

use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars};
use jaq_json::{Val, read, write};
use postrider_engine::TransformError;
use serde_json::value::RawValue;

type Compiled = Filter<JustLut<Val>>;

/// Compiled programs that are kept; with more, all are dropped.
const KEPT_MAX: usize = 32;

#[derive(Default)]
pub struct Programs(HashMap<String, Compiled>);

impl Programs {
    /// # Errors
    /// `BadProgram`, in words that say where.
    pub fn check(&mut self, program: &str) -> Result<(), TransformError> {
        self.compiled(program).map(|_| ())
    }

    /// The one value that the program gives for this body, as compact JSON of at most `output_max` bytes.
    ///
    /// # Errors
    /// Why there is none.
    pub fn run(&mut self, program: &str, body: &[u8], output_max: usize) -> Result<Vec<u8>, TransformError> {
        let filter = self.compiled(program)?;
        // jq reads more than JSON, such as comments; a body that is none is not to become one by the way.
        if serde_json::from_slice::<&RawValue>(body).is_err() {
            return Err(TransformError::NotJson);
        }
        let input = read::parse_single(body).map_err(|_| TransformError::NotJson)?;
        let environment = Val::Obj(Default::default());
        let context = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new([environment]));
        let mut given = filter.id.run((context, input)).map(|value| {
            value.map_err(|exception| match exception.get_err() {
                Ok(error) => TransformError::Raised(error.to_string()),
                Err(_) => TransformError::Raised("the program stopped itself".to_owned()),
            })
        });
        let value = given.next().ok_or(TransformError::NotOne)??;
        if given.next().transpose()?.is_some() {
            return Err(TransformError::NotOne);
        }
        let mut output = Bounded { bytes: Vec::new(), most: output_max };
        write::write(&mut output, &write::Pp::default(), 0, &value).map_err(|_| TransformError::OutputTooLarge)?;
        // It knows values that JSON has not: NaN, bytes, keys that are no text.
        if serde_json::from_slice::<&RawValue>(&output.bytes).is_err() {
            return Err(TransformError::Raised("the value cannot be written as JSON".to_owned()));
        }
        Ok(output.bytes)
    }

    fn compiled(&mut self, program: &str) -> Result<&Compiled, TransformError> {
        if !self.0.contains_key(program) {
            let compiled = compile(program)?;
            if self.0.len() >= KEPT_MAX {
                self.0.clear();
            }
            self.0.insert(program.to_owned(), compiled);
        }
        self.0.get(program).ok_or_else(|| TransformError::BadProgram("it was not kept".to_owned()))
    }
}

/// Nothing can be imported: a program is whole in itself.
fn compile(program: &str) -> Result<Compiled, TransformError> {
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(ours());
    // The environment of a worker is nobody's business.
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()).filter(|(name, ..)| *name != "env");
    let arena = Arena::default();
    let file = File { code: program, path: () };
    let modules = Loader::new(definitions).load(&arena, file).map_err(|errors| bad(program, loading(errors)))?;
    load::import(&modules, |_| Err("nothing can be imported".to_owned()))
        .map_err(|errors| bad(program, loading(errors)))?;
    Compiler::default().with_funs(functions).with_global_vars(["$ENV"]).compile(modules).map_err(|errors| {
        let first = errors.into_iter().flat_map(|(_, undefined)| undefined).next();
        bad(program, first.map(|(name, what)| (format!("undefined {} `{name}`", what.as_str()), name)))
    })
}

/// In place of what a program must not see.
fn ours() -> impl Iterator<Item = load::parse::Def<&'static str>> {
    load::parse("def env: {};", |parser| parser.defs()).unwrap_or_default().into_iter()
}

/// The first error in words, and the part of the program that it is at.
fn loading<P>(errors: load::Errors<&str, P>) -> Option<(String, &str)> {
    let (_, error) = errors.into_iter().next()?;
    match error {
        load::Error::Io(errors) => errors.into_iter().next().map(|(path, words)| (words, path)),
        load::Error::Lex(errors) => {
            errors.into_iter().next().map(|(expected, at)| (format!("expected {}", expected.as_str()), at))
        }
        load::Error::Parse(errors) => {
            errors.into_iter().next().map(|(expected, at)| (format!("expected {}", expected.as_str()), at))
        }
    }
}

/// `at` is a part of the program itself, or empty at its end.
fn bad(program: &str, error: Option<(String, &str)>) -> TransformError {
    let Some((words, at)) = error else {
        return TransformError::BadProgram("it cannot be compiled".to_owned());
    };
    let offset = (at.as_ptr() as usize).checked_sub(program.as_ptr() as usize).filter(|offset| *offset < program.len());
    let before = offset.and_then(|offset| program.get(..offset));
    let place = match before {
        None => "at its end".to_owned(),
        Some(before) => {
            let (line, column) =
                (before.matches('\n').count() + 1, before.chars().rev().take_while(|c| *c != '\n').count() + 1);
            let found: String = at.chars().take(20).take_while(|c| *c != '\n').collect();
            format!("in line {line}, column {column}, at `{found}`")
        }
    };
    TransformError::BadProgram(format!("{words} {place}"))
}

/// Refuses what goes over.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.most {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &str, body: &str) -> Result<String, TransformError> {
        let output = Programs::default().run(program, body.as_bytes(), 1000)?;
        Ok(String::from_utf8(output).unwrap())
    }

    // proves: R13
    #[test]
    fn r13_exactly_one_value_is_taken() {
        let body = r#"{"a": {"n": 12345678901234567890.50, "é": "ü"}, "b": [1, 2]}"#;
        assert_eq!(run(".a", body).unwrap(), r#"{"n":12345678901234567890.50,"é":"ü"}"#, "no number is rounded");
        assert_eq!(run("{text: \"\\(.b | length) items\"}", body).unwrap(), r#"{"text":"2 items"}"#);
        assert_eq!(run(".none", body).unwrap(), "null");
        assert_eq!(run("[.b[] | select(. > 1)]", body).unwrap(), "[2]");
        for program in [".b[]", "empty", ".b[] | select(. > 7)"] {
            assert_eq!(run(program, body), Err(TransformError::NotOne), "{program}");
        }
    }

    // proves: R13
    #[test]
    fn r13_what_is_no_json_goes_neither_in_nor_out() {
        for body in ["", "plain", "{\"a\": 1} {}", "# comment\n1", "NaN", "\u{feff}1"] {
            assert_eq!(run(".", body), Err(TransformError::NotJson), "{body:?}");
        }
        for program in ["nan", "infinite", "{(1): 2}"] {
            let given = run(program, "1");
            let is_json = given.as_ref().is_ok_and(|text| serde_json::from_str::<serde_json::Value>(text).is_ok());
            assert!(is_json || matches!(given, Err(TransformError::Raised(_))), "{program}: {given:?}");
        }
    }

    #[test]
    fn r13_the_environment_is_empty() {
        assert!(std::env::vars().next().is_some());
        for program in ["env", "$ENV", "[env, $ENV] | add"] {
            assert_eq!(run(program, "1").as_deref(), Ok("{}"), "{program}");
        }
        assert_eq!(run("[env.PATH, $ENV.PATH]", "1").unwrap(), "[null,null]");
    }

    #[test]
    fn r13_a_program_that_fails_says_why() {
        assert!(matches!(run(".a.b", r#"{"a": 1}"#), Err(TransformError::Raised(words)) if words.contains("index")));
        assert_eq!(run("error(\"no\")", "1"), Err(TransformError::Raised("\"no\"".to_owned())));
        assert_eq!(run("halt", "1"), Err(TransformError::Raised("the program stopped itself".to_owned())));
        assert_eq!(run("[range(1000)]", "1"), Err(TransformError::OutputTooLarge));
    }

    #[test]
    fn r13_a_program_that_cannot_be_compiled_is_shown_where() {
        for (program, place) in [
            (".a |", "at its end"),
            (".a\n| nothing(.)", "line 2, column 3"),
            ("{a: (.b}", "line 1"),
            ("$x", "undefined variable"),
            ("import \"a\" as a; .", "line 1"),
            ("include \"/etc/passwd\"; .", "line 1"),
            ("import \"a\" as $a; .", "imported"),
            ("input", "undefined filter"),
        ] {
            match Programs::default().check(program) {
                Err(TransformError::BadProgram(words)) => assert!(words.contains(place), "{program}: {words}"),
                other => panic!("{program}: {other:?}"),
            }
        }
    }

    #[test]
    fn r13_no_more_programs_are_kept_than_there_is_room_for() {
        let mut programs = Programs::default();
        for number in 0..KEPT_MAX + 2 {
            programs.check(&number.to_string()).unwrap();
        }
        assert!(programs.0.len() <= KEPT_MAX);
    }
}
