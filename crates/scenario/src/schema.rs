//! The JSON schema of scenario files, for editors. It is made of the declarations that the
//! reader itself works by, so the two cannot part.

use serde_json::json;

use super::{knobs, world};

/// JSON schema (draft 7) of a scenario file, pretty-printed, with a newline at the end.
///
/// It knows keys, kinds, units and the knobs of each profile. What lies beyond a schema (names
/// that must exist, limits of quantities, a path for every flow) is checked by [`super::load`].
pub fn schema() -> String {
    let mut schema = world::SECTION.schema();
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "Ackclock scenario".into();
    schema["properties"]["host"]["additionalProperties"]["allOf"] = knobs::schema_by_profile();
    for list in ["path", "flow"] {
        schema["properties"][list]["minItems"] = json!(1);
    }
    format!("{schema:#}\n")
}
