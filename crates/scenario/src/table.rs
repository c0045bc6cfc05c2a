//! A [`Section`](super::keys::Section) as a Rust type: what the keys of a table hold, `None` for those
//! that are not written.
//!
//! The macro [`table`] declares type and section at once, so that reader, writer, schema and
//! documentation have the same keys in the same order.

use super::keys::{Fields, Reader};

/// The type of a section.
pub(super) trait Table: Default {
    /// Reads all keys; those with wrong values are reported and left out.
    fn read(fields: &Fields<'_>, reader: &mut Reader) -> Self;

    /// The keys that have values, in the order of the section.
    fn write(&self) -> toml_edit::InlineTable;
}

/// Declares a type with a field for each key, and its section:
///
/// `table! { /** doc */ pub Name: SECTION = "a host" { field: Type = KEY, ... } rule: value, ... }`, with
/// `also { field: Type, ... }` before the keys for fields that are no keys.
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
                #[doc = concat!("`", stringify!($field), "`, as `ackclock scenario keys` explains it.")]
                $vis $field: Option<$crate::keys::Located<$type>>,
            )*
        }

        #[doc = concat!("The keys of [`", stringify!($name), "`].")]
        #[allow(clippy::needless_update, reason = "sections with all rules")]
        pub(crate) static $section: $crate::keys::Section = $crate::keys::Section {
            what: $what,
            keys: &[$(&$key),*],
            $($rule: $value,)*
            ..$crate::keys::Section::EMPTY
        };

        impl $crate::table::Table for $name {
            fn read(
                fields: &$crate::keys::Fields<'_>,
                reader: &mut $crate::keys::Reader,
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
