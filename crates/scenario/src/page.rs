//! `page` of a flow: web pages, each a document and its objects.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use sim::scenario::{App, CDF_WHOLE, PageSpec, TransferSizes};
use units::{Bytes, Duration};

use super::arrivals::{self, CDF, MEAN};
use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{DurationType, IntegerType, SizeType, TableType};
use super::source::SpannedError;
use super::table::table;
use super::tree::{TomlNode, TomlValue};
use crate::units_text::MAX_SIZE;

const SIZE: SizeType = SizeType { least: Bytes(1), most: MAX_SIZE };

static HTML: Key<SizeType> = Key::required("html", SIZE, "bytes of the document, fetched first");
static OBJECTS: Key<IntegerType> = Key::required(
    "objects",
    IntegerType { least: 0, most: 10_000 },
    "number of objects, fetched once the document has arrived",
);
static OBJECT: Key<ObjectSizeType> =
    Key::optional("object", ObjectSizeType, "10kB", "bytes of each object, fixed or by a law");
static CONNECTIONS: Key<IntegerType> = Key::optional(
    "connections",
    IntegerType { least: 1, most: 256 },
    "1",
    "connections of a page; all but the first are opened once the first document has arrived, and \
     stay open for the pages that follow",
);
static STREAMS: Key<IntegerType> = Key::optional(
    "streams",
    IntegerType { least: 1, most: 10_000 },
    "1",
    "maximum outstanding requests of a connection: 1 as in HTTP/1.1, more as the streams of HTTP/2 \
     and HTTP/3; responses are in the order of the requests",
);
static THINK: Key<DurationType> = Key::optional(
    "think",
    DurationType { least: Duration::ZERO, default_unit: "s" },
    "0s",
    "time from the last byte of a page to the request of the next",
);
static PAGES: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 1_000_000_000 },
    "until the run ends",
    "number of pages",
);
static REQUEST: Key<SizeType> = Key::optional("request", SIZE, "500B", "bytes of a request");

table! {
    /// Web pages.
    pub PageTable: PAGE_SECTION = "`page`" {
        html: Bytes = HTML,
        objects: u64 = OBJECTS,
        object: ObjectSize = OBJECT,
        connections: u64 = CONNECTIONS,
        streams: u64 = STREAMS,
        think: Duration = THINK,
        count: u64 = PAGES,
        request: Bytes = REQUEST,
    }
    elsewhere: |key| match key {
        "document" => Some("the size of the document is called `html`"),
        "size" | "sizes" => Some("the size of each object is called `object`"),
        "pages" => Some("the number of pages is called `count`"),
        _ => None,
    },
}

table! {
    /// The law of the sizes of objects.
    pub ObjectTable: OBJECT_SECTION = "`object`" {
        cdf: String = CDF,
        mean: Bytes = MEAN,
    }
    one_of: &["cdf", "mean"],
    elsewhere: |key| match key {
        "size" => Some("a fixed size is written object = \"10kB\""),
        _ => None,
    },
}

/// Sizes of objects.
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectSize {
    /// The same of all.
    Fixed(Bytes),
    /// Drawn from a distribution.
    Law(Box<ObjectTable>),
}

/// A size, or the table of a distribution.
struct ObjectSizeType;

impl KeyType for ObjectSizeType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [SIZE.schema(), OBJECT_SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        "size or a table".into()
    }
}

impl KeyCodec for ObjectSizeType {
    type Value = ObjectSize;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<ObjectSize> {
        match node.value {
            TomlValue::Table(_) => {
                TableType::of(&OBJECT_SECTION).read(key, node, reader).map(ObjectSize::Law)
            }
            _ => SIZE.read(key, node, reader).map(ObjectSize::Fixed),
        }
    }

    fn write(&self, value: &ObjectSize) -> toml_edit::Value {
        match value {
            ObjectSize::Fixed(size) => SIZE.write(size),
            ObjectSize::Law(table) => TableType::of(&OBJECT_SECTION).write(table),
        }
    }
}

impl PageTable {
    /// Builds the application; reports more connections than objects. `None` if a key is missing.
    pub(super) fn app(&self, reader: &mut ScenarioReader) -> Option<App> {
        let fixed = |size: Bytes| TransferSizes::Cdf([(size.get(), CDF_WHOLE)].into());
        let sizes = match self.object.as_ref().map(|object| &object.value) {
            None => Some(fixed(Bytes(10_000))),
            Some(ObjectSize::Fixed(size)) => Some(fixed(*size)),
            Some(ObjectSize::Law(law)) => {
                arrivals::distribution(law.cdf.as_ref(), law.mean.as_ref(), reader)
            }
        };
        let objects = self.objects.as_ref()?.value;
        let count = |given: Option<Located<u64>>| given.map_or(1, |given| given.value as u32);
        if let Some(given) = self.connections.filter(|given| given.value > objects.max(1)) {
            let message = format!("a page with {objects} objects does not use these connections");
            let fault = SpannedError::new(given.span, message);
            reader.report(fault.expected(format!("at most {}", objects.max(1))));
            return None;
        }
        let page = PageSpec {
            html: self.html.as_ref()?.value,
            objects: objects as u32,
            sizes: sizes?,
            request: self.request.map_or(Bytes(500), |request| request.value),
            connections: count(self.connections),
            streams: count(self.streams),
            think: self.think.map_or(Duration::ZERO, |think| think.value),
            count: self.count.map(|count| count.value),
        };
        Some(App::Page { page: Arc::new(page), connection: 0 })
    }

    /// Had the number of pages an invalid value?
    pub(super) fn limit_was_invalid(reader: &ScenarioReader) -> bool {
        reader.was_invalid(&PAGES)
    }
}
