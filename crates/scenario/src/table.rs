//! A [`TableSpec`](super::keys::TableSpec) as a Rust type: the values of a table's keys, `None` for
//! absent keys.
//!
//! The macro [`table`] declares the type and its section together, so that reader, writer, schema
//! and reference have the same keys in the same order.

use super::keys::{ScenarioReader, TableFields};

/// The type of a section.
pub(super) trait KeyTable: Default {
    /// Reads all keys; keys with invalid values are reported and omitted.
    fn read(fields: &TableFields<'_>, reader: &mut ScenarioReader) -> Self;

    /// Writes the keys that have values, in the order of the section.
    fn write(&self) -> toml_edit::InlineTable;
}

/// Declares a type with a field for each key, and its section:
///
/// `table! { /** doc */ pub Name: SECTION = "a host" { field: Type = KEY, ... } rule: value, ... }`, with
/// `also { field: Type, ... }` before the keys for fields that are not keys.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident: $section:ident = $what:literal
        $(also { $($(#[$plain_meta:meta])* $plain:ident: $plain_type:ty,)* })?
        { $($field:ident: $type:ty = $key:ident,)* }
        $($rule:ident: $value:expr,)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        $vis struct $name {
            $($($(#[$plain_meta])* $vis $plain: $plain_type,)*)?
            $(
                #[doc = concat!("`", stringify!($field), "`; see `ackclock scenario keys`.")]
                $vis $field: Option<$crate::keys::Located<$type>>,
            )*
        }

        #[doc = concat!("The keys of [`", stringify!($name), "`].")]
        #[allow(clippy::needless_update, reason = "sections with all rules")]
        pub(crate) static $section: $crate::keys::TableSpec = $crate::keys::TableSpec {
            what: $what,
            keys: &[$(&$key),*],
            $($rule: $value,)*
            ..$crate::keys::TableSpec::EMPTY
        };

        impl $crate::table::KeyTable for $name {
            fn read(
                fields: &$crate::keys::TableFields<'_>,
                reader: &mut $crate::keys::ScenarioReader,
            ) -> Self {
                Self {
                    $($field: fields.get(&$key, reader),)*
                    $($($plain: Default::default(),)*)?
                }
            }

            fn write(&self) -> toml_edit::InlineTable {
                let mut table = toml_edit::InlineTable::new();
                $($key.write(self.$field.as_ref(), &mut table);)*
                table
            }
        }
    };
}
pub(super) use table;
