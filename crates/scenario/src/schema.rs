//! The JSON schema of scenario files, for editors, generated from the reader's declarations.

use serde_json::json;

use super::{knobs, world};

/// Returns the JSON schema (draft 7) of a scenario file, pretty-printed, with a final newline.
///
/// It covers keys, types, units and the knobs of each profile. [`super::load`] also checks
/// references, limits of quantities and the path of every flow.
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
