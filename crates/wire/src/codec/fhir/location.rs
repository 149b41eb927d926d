//! Addresses and tags: `https://host/r4/Patient/7/_history/2` and `W/"2"`. Nothing here is dialled.

use postrider_core::fhir::{is_id, is_type};

/// Which resource an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub resource_type: String,
    pub id: String,
    pub version_id: Option<String>,
}

/// Reads an absolute or relative address, with or without a version; `None` where it names no resource.
pub fn read(location: &str) -> Option<Named> {
    let path = location.trim().split(['?', '#']).next().unwrap_or_default();
    let mut segments = path.rsplit('/').filter(|segment| !segment.is_empty());
    let last = segments.next()?;
    let mut id = last;
    let mut version_id = None;
    let mut before = segments.next()?;
    if before == "_history" {
        version_id = Some(last).filter(|id| is_id(id)).map(str::to_owned);
        id = segments.next()?;
        before = segments.next()?;
    }
    (is_type(before) && is_id(id)).then(|| Named { resource_type: before.to_owned(), id: id.to_owned(), version_id })
}

/// The version in a tag such as `W/"2"`.
pub fn version(tag: &str) -> Option<String> {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").or_else(|| tag.strip_prefix("w/")).unwrap_or(tag);
    let version = tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(tag);
    is_id(version).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: Z33
    #[test]
    fn z33_f11_every_form_of_a_location_names_its_resource() {
        for (location, resource_type, id, version) in [
            ("https://fhir.example.org/r4/Patient/7/_history/2", "Patient", "7", Some("2")),
            ("https://other.example/Patient/7", "Patient", "7", None),
            ("/r4/Patient/7", "Patient", "7", None),
            ("Patient/7/_history/2", "Patient", "7", Some("2")),
            ("Patient/a-1.b?_format=json", "Patient", "a-1.b", None),
            ("Patient/7/", "Patient", "7", None),
        ] {
            let named = read(location).unwrap_or_else(|| panic!("{location}"));
            assert_eq!(
                (named.resource_type.as_str(), named.id.as_str(), named.version_id.as_deref()),
                (resource_type, id, version)
            );
        }
        for nothing in ["", "/", "Patient", "https://fhir.example.org/", "/r4/patient/7", "Patient/a b", "_history/2"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn f09_a_tag_has_a_version() {
        for (tag, version) in
            [("W/\"2\"", Some("2")), ("\"a-b\"", Some("a-b")), ("3", Some("3")), ("W/\"\"", None), ("*", None)]
        {
            assert_eq!(super::version(tag).as_deref(), version, "{tag}");
        }
    }
}
