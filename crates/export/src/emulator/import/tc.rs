//! `tc qdisc` commands and what `tc qdisc show` prints: the qdiscs of each device, root first.
//!
//! A qdisc that was read is part of the path or named in an error.

use std::collections::BTreeMap;

use super::element::ParsedDirection;
use super::netem::NetemOptions;
use super::quantity::count;
use super::tbf::TbfOptions;
use super::tokens::{ImportError, ScriptToken, TokenPosition, TokenReader};

/// Network namespace and name of a device.
type DeviceName<'t> = (&'t str, &'t str);

/// Qdiscs of all devices, in the order of the script.
#[derive(Debug, Default)]
pub(super) struct TcDevices<'t> {
    devices: Vec<TcDevice<'t>>,
    /// Index of each device that has a name.
    named: BTreeMap<DeviceName<'t>, usize>,
}

/// The qdiscs of a device.
#[derive(Debug, Default)]
struct TcDevice<'t> {
    name: &'t str,
    root: Option<Qdisc<'t>>,
    /// The other qdiscs, with the word that names their parent.
    children: Vec<(Qdisc<'t>, ScriptToken<'t>, u16)>,
}

#[derive(Debug)]
struct Qdisc<'t> {
    /// The word that names the kind.
    kind: ScriptToken<'t>,
    handle: Option<u16>,
    options: QdiscOptions<'t>,
}

#[derive(Debug)]
enum QdiscOptions<'t> {
    Netem(Box<NetemOptions<'t>>),
    Tbf(TbfOptions<'t>),
    /// A device without a queue.
    NoQueue,
}

/// Where a qdisc is attached.
#[derive(Debug, Default)]
struct Attachment<'t> {
    device: Option<ScriptToken<'t>>,
    root: Option<ScriptToken<'t>>,
    parent: Option<(ScriptToken<'t>, u16)>,
    handle: Option<u16>,
}

impl<'t> TcDevices<'t> {
    /// Reads a command after the word `tc`.
    pub(super) fn command(
        &mut self,
        namespace: &'t str,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let object = reader.value("`qdisc`")?;
        if object.text != "qdisc" {
            let text = object.text;
            return Err(object.error(format!("tc: `{text}` is not supported, only `qdisc`")));
        }
        let verb = reader.value("`add`")?;
        match verb.text {
            "add" | "replace" | "change" => {
                let mut attachment = Attachment::default();
                let kind = loop {
                    let word = reader.value("a qdisc")?;
                    if !attachment.option(word, reader)? {
                        break word;
                    }
                };
                self.add(namespace, kind, &attachment, reader)
            }
            "del" | "delete" => self.delete(namespace, verb, reader),
            other => Err(verb.error(format!("tc qdisc: `{other}` is not supported"))),
        }
    }

    /// Reads a line of `tc qdisc show` after the word `qdisc`.
    pub(super) fn shown(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        let kind = reader.value("a qdisc")?;
        let handle = reader.value("a handle such as 8001:")?;
        let mut attachment = Attachment { handle: Some(major(handle)?), ..Attachment::default() };
        while let Some(word) =
            reader.next_if(|word| matches!(word, "dev" | "root" | "parent" | "refcnt"))
        {
            if word.text == "refcnt" {
                count(reader.value("a number")?, "a number")?;
            } else {
                attachment.option(word, reader)?;
            }
        }
        self.add("", kind, &attachment, reader)
    }

    fn add(
        &mut self,
        namespace: &'t str,
        kind: ScriptToken<'t>,
        attachment: &Attachment<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let options = match kind.text {
            "netem" => QdiscOptions::Netem(Box::new(NetemOptions::parse(reader)?)),
            "tbf" => QdiscOptions::Tbf(TbfOptions::parse(kind, reader)?),
            "noqueue" => QdiscOptions::NoQueue,
            other => {
                let message = format!("qdisc `{other}` is not supported, only netem and tbf");
                let hint = "of a device that is not part of the path, leave the line out: \
                            tc qdisc show dev DEVICE";
                return Err(kind.error(message).hint(hint));
            }
        };
        let qdisc = Qdisc { kind, handle: attachment.handle, options };
        let device = self.device(namespace, attachment);
        match (attachment.root, attachment.parent) {
            (Some(_), Some((parent, _))) => Err(parent.error("tc: either `root` or `parent`")),
            (None, None) => {
                Err(kind.error(format!("`{}`: `root` or `parent` is missing", kind.text)))
            }
            (Some(root), None) => match &device.root {
                Some(first) => Err(root.error(format!(
                    "the device has a root qdisc already, `{}` in line {}",
                    first.kind.text, first.kind.position.line
                ))),
                None => {
                    device.root = Some(qdisc);
                    Ok(())
                }
            },
            (None, Some((parent, major))) => {
                device.children.push((qdisc, parent, major));
                Ok(())
            }
        }
    }

    /// Returns the device of a qdisc. Without a name each root begins a device, as `tc qdisc show
    /// dev DEVICE` prints none.
    fn device(&mut self, namespace: &'t str, attachment: &Attachment<'t>) -> &mut TcDevice<'t> {
        let new = self.devices.len();
        let index = match attachment.device {
            Some(name) => *self.named.entry((namespace, name.text)).or_insert(new),
            None if attachment.root.is_some() => new,
            None => {
                let last = self.devices.iter().rposition(|device| device.name.is_empty());
                last.unwrap_or(new)
            }
        };
        if index == new {
            let name = attachment.device.map_or("", |name| name.text);
            self.devices.push(TcDevice { name, ..TcDevice::default() });
        }
        &mut self.devices[index]
    }

    /// Reads `tc qdisc del dev DEVICE root`, which precedes the commands of many scripts.
    fn delete(
        &mut self,
        namespace: &'t str,
        verb: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let mut attachment = Attachment::default();
        while let Some(word) = reader.next_if(|word| matches!(word, "dev" | "root")) {
            attachment.option(word, reader)?;
        }
        while reader
            .next_if(|word| matches!(word, "2>/dev/null" | ">/dev/null" | "&>/dev/null" | "2>&1"))
            .is_some()
        {}
        let (Some(device), Some(_)) = (attachment.device, attachment.root) else {
            return Err(verb.error("tc qdisc del: `dev` and `root` are missing"));
        };
        let known = self.named.get(&(namespace, device.text)).map(|&index| &self.devices[index]);
        let first = known.and_then(|device| device.root.as_ref().map(|root| root.kind));
        match first.or(known.and_then(|device| device.children.first()).map(|(one, ..)| one.kind)) {
            None => Ok(()),
            Some(kind) => Err(verb.error(format!(
                "`{}` removes `{}` of line {} from the path",
                verb.text, kind.text, kind.position.line
            ))),
        }
    }

    /// Returns a direction for each device that has a queue, with the position of its first word.
    pub(super) fn directions(self) -> Result<Vec<ParsedDirection>, ImportError> {
        self.devices.into_iter().filter_map(|device| device.direction().transpose()).collect()
    }
}

impl<'t> Attachment<'t> {
    /// Reads an option that precedes the kind of the qdisc; returns false for any other word.
    fn option(
        &mut self,
        word: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<bool, ImportError> {
        let is_second = match word.text {
            "dev" => self.device.replace(reader.value("a device")?).is_some(),
            "root" => self.root.replace(word).is_some(),
            "parent" => {
                let parent = reader.value("a handle such as 1:")?;
                self.parent.replace((parent, major(parent)?)).is_some()
            }
            "handle" => {
                let handle = reader.value("a handle such as 1:")?;
                self.handle.replace(major(handle)?).is_some()
            }
            _ => return Ok(false),
        };
        if is_second {
            return Err(word.error(format!("`{}` is given twice", word.text)));
        }
        Ok(true)
    }
}

impl TcDevice<'_> {
    fn direction(self) -> Result<Option<ParsedDirection>, ImportError> {
        let mut children = self.children.into_iter();
        let (first, second) = (children.next(), children.next());
        let Some(root) = self.root else {
            return match first {
                None => Ok(None),
                Some((_, parent, _)) => Err(no_parent(parent)),
            };
        };
        let at: TokenPosition = root.kind.position;
        let child = match first {
            Some((child, _, major)) if root.handle == Some(major) && major != 0 => Some(child),
            Some((_, parent, _)) => return Err(no_parent(parent)),
            None => None,
        };
        if let Some((third, ..)) = second {
            let message = format!("third qdisc `{}` of a device is not supported", third.kind.text);
            return Err(third.kind.error(message));
        }
        let elements = match (&root.options, child) {
            (QdiscOptions::NoQueue, None) => return Ok(None),
            (QdiscOptions::Netem(netem), None) => netem.elements()?,
            (QdiscOptions::Tbf(tbf), None) => vec![tbf.element()],
            (QdiscOptions::Netem(netem), Some(child)) => {
                let QdiscOptions::Tbf(tbf) = &child.options else {
                    return Err(below(&root, &child));
                };
                if let Some(rate) = netem.rate_token() {
                    let message = "netem with a `rate` and a qdisc below it is not supported";
                    return Err(rate.error(message));
                }
                let mut elements = netem.elements()?;
                elements.push(tbf.element());
                elements
            }
            (QdiscOptions::Tbf(_) | QdiscOptions::NoQueue, Some(child)) => {
                return Err(below(&root, &child));
            }
        };
        Ok(Some(ParsedDirection { position: at, elements }))
    }
}

fn below(parent: &Qdisc<'_>, child: &Qdisc<'_>) -> ImportError {
    let (parent, child_kind) = (parent.kind.text, child.kind.text);
    let error = child.kind.error(format!("`{child_kind}` below `{parent}` is not supported"));
    error.hint("what can be imported: netem, tbf, or netem as root with tbf below it")
}

fn no_parent(parent: ScriptToken<'_>) -> ImportError {
    parent.error(format!("parent `{}` is no root qdisc of the device in this text", parent.text))
}

/// Reads the major number of a handle: `1:`, `8001:`, `1:1`, in hexadecimal.
fn major(token: ScriptToken<'_>) -> Result<u16, ImportError> {
    let parsed = token.text.split_once(':').and_then(|(major, minor)| {
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_minor = minor.is_empty() || is_hex(minor) && u16::from_str_radix(minor, 16).is_ok();
        (is_minor && is_hex(major)).then(|| u16::from_str_radix(major, 16).ok())?
    });
    parsed.ok_or_else(|| token.error(format!("`{}`: expected a handle such as 1:", token.text)))
}
