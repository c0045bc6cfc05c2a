//! `tc` commands and what `tc qdisc show` and `tc class show` print: the qdiscs, classes and filters
//! of each device.
//!
//! A qdisc, class or filter that was read is part of the path or named in an error ([`tree`]).

mod tree;

use std::collections::BTreeMap;

use super::element::{ParsedDirection, QueueModel};
use super::filter::TcFilter;
use super::htb::{HtbClass, HtbOptions, PrioOptions};
use super::netem::NetemOptions;
use super::quantity::count;
use super::queue::{not_modelled, queue};
use super::tbf::TbfOptions;
use super::tokens::{Given, ImportError, ScriptToken, TokenReader};

/// Network namespace and name of a device.
type DeviceName<'t> = (&'t str, &'t str);

/// Handle of a qdisc, with minor 0, or of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassHandle {
    pub(super) major: u16,
    pub(super) minor: u16,
}

/// Handle of the qdisc of incoming packets.
const INGRESS: u16 = 0xffff;

/// Qdiscs of all devices, in the order of the script.
#[derive(Debug, Default)]
pub(super) struct TcDevices<'t> {
    devices: Vec<TcDevice<'t>>,
    /// Index of each device that has a name.
    named: BTreeMap<DeviceName<'t>, usize>,
    /// Commands so far that wait or send traffic.
    pub(super) waits: usize,
}

/// What a device has.
#[derive(Debug, Default)]
pub(super) struct TcDevice<'t> {
    namespace: &'t str,
    name: &'t str,
    root: Option<Qdisc<'t>>,
    /// The other qdiscs, with the word that names their parent.
    children: Vec<(Qdisc<'t>, ScriptToken<'t>, ClassHandle)>,
    classes: Vec<TcClass<'t>>,
    filters: Vec<TcFilter<'t>>,
    /// The command that removed the root qdisc.
    removal: Option<QdiscRemoval<'t>>,
    /// The word `ingress` or `clsact`.
    ingress: Option<ScriptToken<'t>>,
    /// Its handle.
    ingress_handle: u16,
}

/// `tc qdisc del`.
#[derive(Debug)]
struct QdiscRemoval<'t> {
    verb: ScriptToken<'t>,
    /// Whether a command waited or sent traffic between the qdisc and its removal.
    was_used: bool,
}

#[derive(Debug)]
struct Qdisc<'t> {
    /// The word that names the kind.
    kind: ScriptToken<'t>,
    handle: Option<u16>,
    options: QdiscOptions<'t>,
    /// Commands before it that wait or send traffic.
    waits: usize,
}

#[derive(Debug)]
enum QdiscOptions<'t> {
    Netem(Box<NetemOptions<'t>>),
    Tbf(TbfOptions<'t>),
    Htb(HtbOptions),
    Prio(PrioOptions),
    Queue {
        model: QueueModel,
        /// What `tc qdisc show` prints of a device without commands.
        is_default: bool,
    },
    /// A device without a queue of its own.
    NoQueue,
}

#[derive(Debug)]
struct TcClass<'t> {
    token: ScriptToken<'t>,
    handle: ClassHandle,
    /// `None` for the root.
    parent: Option<ClassHandle>,
    htb: HtbClass<'t>,
    waits: usize,
}

/// Where a qdisc, class or filter is attached.
#[derive(Debug, Default)]
struct Attachment<'t> {
    device: Option<ScriptToken<'t>>,
    root: Option<ScriptToken<'t>>,
    parent: Option<(ScriptToken<'t>, ClassHandle)>,
    handle: Option<ClassHandle>,
    class: Option<(ScriptToken<'t>, ClassHandle)>,
    ingress: Option<ScriptToken<'t>>,
    /// Whether it is that of a filter.
    is_filter: bool,
    /// `change` or `replace`: what is there already is replaced.
    replaces: bool,
}

impl<'t> TcDevices<'t> {
    /// Reads a command after the word `tc`.
    pub(super) fn command(
        &mut self,
        namespace: &'t str,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let mut namespace = namespace;
        while let Some(option) = reader.next_if(|word| word.starts_with('-')) {
            match option.text {
                "-s" | "-d" | "-p" | "-r" | "-force" | "-iec" | "-statistics" | "-details" => {}
                "-n" | "-net" | "-netns" => namespace = reader.value("a namespace")?.text,
                other => return Err(option.error(format!("tc: option `{other}` is not supported"))),
            }
        }
        let object = reader.value("`qdisc`")?;
        let verb = reader.value("`add`")?;
        if matches!(verb.text, "show" | "list" | "ls") {
            while reader.next().is_some() {}
            return Ok(());
        }
        let adds = matches!(verb.text, "add" | "replace" | "change");
        match object.text {
            "qdisc" if matches!(verb.text, "del" | "delete") => {
                self.delete(namespace, verb, reader)
            }
            "qdisc" if adds => {
                let replaces = verb.text != "add";
                let mut attachment = Attachment { replaces, ..Attachment::default() };
                let kind = self.attach(&mut attachment, reader, "a qdisc")?;
                self.add(namespace, kind, &attachment, reader, false)
            }
            "class" if adds => self.add_class(namespace, verb, reader),
            "filter" if adds => self.add_filter(namespace, reader),
            "qdisc" | "class" | "filter" => {
                let text = format!("tc {}: `{}` is not supported", object.text, verb.text);
                Err(verb.error(text))
            }
            other => {
                let message =
                    format!("tc: `{other}` is not supported, only `qdisc`, `class` and `filter`");
                Err(object.error(message))
            }
        }
    }

    /// Reads where something is attached; returns the word after that.
    fn attach(
        &self,
        attachment: &mut Attachment<'t>,
        reader: &mut TokenReader<'t>,
        expected: &str,
    ) -> Result<ScriptToken<'t>, ImportError> {
        loop {
            let word = reader.value(expected)?;
            if !attachment.option(word, reader)? {
                return Ok(word);
            }
        }
    }

    /// Reads a line of `tc qdisc show` or `tc class show`, or of a batch file, after the first word.
    pub(super) fn shown(
        &mut self,
        object: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let kind = reader.value("a qdisc")?;
        let adds = matches!(kind.text, "add" | "replace" | "change");
        match object.text {
            "qdisc" if adds => {
                let replaces = kind.text != "add";
                let mut attachment = Attachment { replaces, ..Attachment::default() };
                let kind = self.attach(&mut attachment, reader, "a qdisc")?;
                return self.add("", kind, &attachment, reader, false);
            }
            "class" if adds => return self.add_class("", kind, reader),
            "filter" if adds => return self.add_filter("", reader),
            "filter" => return Err(kind.error("the output of `tc filter show` is not supported")),
            _ => {}
        }
        let handle = reader.value("a handle such as 8001:")?;
        let mut attachment = Attachment::default();
        if object.text == "class" {
            attachment.class = Some((handle, ClassHandle::read(handle)?));
        } else {
            attachment.handle = Some(ClassHandle::read(handle)?);
        }
        while let Some(word) =
            reader.next_if(|word| matches!(word, "dev" | "root" | "parent" | "refcnt" | "leaf"))
        {
            match word.text {
                "refcnt" => {
                    count(reader.value("a number")?, "a number")?;
                }
                // The qdisc below names its parent.
                "leaf" => {
                    ClassHandle::read(reader.value("a handle")?)?;
                }
                _ => {
                    attachment.option(word, reader)?;
                }
            }
        }
        match object.text {
            "class" => self.class("", kind, &attachment, reader),
            _ => self.add("", kind, &attachment, reader, true),
        }
    }

    fn add(
        &mut self,
        namespace: &'t str,
        kind: ScriptToken<'t>,
        attachment: &Attachment<'t>,
        reader: &mut TokenReader<'t>,
        is_shown: bool,
    ) -> Result<(), ImportError> {
        if matches!(kind.text, "ingress" | "clsact") {
            // `tc qdisc show` ends the line with dashes.
            while reader.next_if(|word| word.starts_with('-')).is_some() {}
            let mut handle = attachment.handle;
            if reader.next_is("handle") {
                handle = Some(ClassHandle::read(reader.value("a handle such as ffff:")?)?);
            }
            let device = self.device(namespace, attachment);
            device.ingress.get_or_insert(kind);
            device.ingress_handle = handle.map_or(INGRESS, |handle| handle.major);
            return Ok(());
        }
        let options = match kind.text {
            "netem" => QdiscOptions::Netem(Box::new(NetemOptions::parse(reader)?)),
            "tbf" => QdiscOptions::Tbf(TbfOptions::parse(kind, reader)?),
            "htb" => QdiscOptions::Htb(HtbOptions::parse(reader)?),
            "prio" => QdiscOptions::Prio(PrioOptions::parse(reader)?),
            "noqueue" | "mq" => QdiscOptions::NoQueue,
            _ => match queue(kind, reader) {
                Some(model) => QdiscOptions::Queue { model: model?, is_default: is_shown },
                None => return Err(not_modelled(kind)),
            },
        };
        let handle = attachment.handle.map(|handle| handle.major);
        let waits = self.waits;
        let qdisc = Qdisc { kind, handle, options, waits };
        let device = self.device(namespace, attachment);
        device.begin_again(kind)?;
        match (attachment.root, attachment.parent) {
            (Some(_), Some((parent, _))) => Err(parent.error("tc: either `root` or `parent`")),
            (None, None) => {
                Err(kind.error(format!("`{}`: `root` or `parent` is missing", kind.text)))
            }
            (Some(root), None) => match &mut device.root {
                Some(first) if attachment.replaces => first.replace(qdisc),
                Some(first) => Err(root.error(format!(
                    "the device has a root qdisc already, `{}` in line {}",
                    first.kind.text, first.kind.position.line
                ))),
                None => {
                    device.root = Some(qdisc);
                    Ok(())
                }
            },
            (None, Some((parent, handle))) => {
                let mut known = device.children.iter_mut().filter(|(.., one)| *one == handle);
                if let Some((first, ..)) = known.next().filter(|_| attachment.replaces) {
                    return first.replace(qdisc);
                }
                device.children.push((qdisc, parent, handle));
                Ok(())
            }
        }
    }

    fn add_class(
        &mut self,
        namespace: &'t str,
        verb: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let replaces = verb.text != "add";
        let mut attachment = Attachment { replaces, ..Attachment::default() };
        let kind = self.attach(&mut attachment, reader, "a class")?;
        self.class(namespace, kind, &attachment, reader)
    }

    fn class(
        &mut self,
        namespace: &'t str,
        kind: ScriptToken<'t>,
        attachment: &Attachment<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        if kind.text != "htb" {
            let message = format!("classes of `{}` are not supported, only of htb", kind.text);
            return Err(kind.error(message));
        }
        // `tc class show` prints `prio` before the rate, and `root` for a class without a parent.
        let htb = HtbClass::parse(kind, reader)?;
        let Some((token, handle)) = attachment.class else {
            return Err(kind.error("tc class: `classid` is missing"));
        };
        let parent = attachment.parent.map(|(_, parent)| parent);
        let parent = parent.filter(|parent| parent.minor != 0);
        // `tc class show dev DEVICE` does not print the device.
        let owner = self.devices.iter().rposition(|device| {
            let root = device.root.as_ref();
            root.is_some_and(|root| root.handle == Some(handle.major) && root.kind.text == "htb")
        });
        let waits = self.waits;
        let device = match owner.filter(|_| attachment.device.is_none()) {
            Some(owner) => &mut self.devices[owner],
            None => self.device(namespace, attachment),
        };
        if let Some(first) = device.classes.iter_mut().find(|class| class.handle == handle) {
            let line = first.token.position.line;
            if attachment.replaces && first.waits == waits {
                first.htb = htb;
                return Ok(());
            }
            if attachment.replaces {
                return Err(changed(token, line));
            }
            let message = format!("class {handle} is configured already, in line {line}");
            return Err(token.error(message));
        }
        device.classes.push(TcClass { token, handle, parent, htb, waits });
        Ok(())
    }

    fn add_filter(
        &mut self,
        namespace: &'t str,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let mut attachment = Attachment { is_filter: true, ..Attachment::default() };
        let kind = loop {
            let word = self.attach(&mut attachment, reader, "a filter")?;
            match word.text {
                "protocol" | "prio" | "pref" | "preference" | "chain" => {
                    reader.value("a value")?;
                }
                _ => break word,
            }
        };
        let device = self.device(namespace, &attachment);
        let parent = attachment.parent.map(|(_, parent)| parent.major);
        let of_ingress =
            |major| major == INGRESS || device.ingress.is_some() && major == device.ingress_handle;
        let is_ingress = attachment.ingress.is_some() || parent.is_some_and(of_ingress);
        let filter = TcFilter::parse(kind, is_ingress, reader)?;
        self.device(namespace, &attachment).filters.push(filter);
        Ok(())
    }

    /// Returns the device of a qdisc. Without a name each root begins a device, as `tc qdisc show
    /// dev DEVICE` prints none.
    fn device(&mut self, namespace: &'t str, attachment: &Attachment<'t>) -> &mut TcDevice<'t> {
        let new = self.devices.len();
        let index = match attachment.device {
            Some(name) => *self.named.entry((namespace, name.text)).or_insert(new),
            None if attachment.root.is_some() && attachment.class.is_none() => new,
            None => {
                let last = self.devices.iter().rposition(|device| device.name.is_empty());
                last.unwrap_or(new)
            }
        };
        if index == new {
            let name = attachment.device.map_or("", |name| name.text);
            self.devices.push(TcDevice { namespace, name, ..TcDevice::default() });
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
        while let Some(word) = reader.next_if(|word| {
            matches!(word, "dev" | "root" | "ingress" | "clsact" | "handle" | "parent")
        }) {
            match word.text {
                "ingress" | "clsact" => attachment.ingress = Some(word),
                _ => {
                    attachment.option(word, reader)?;
                }
            }
        }
        // The kind of the qdisc, if a script names it.
        reader.next_if(|word| matches!(word, "netem" | "tbf" | "htb" | "ingress" | "clsact"));
        let removes = attachment.root.is_some()
            || attachment.ingress.is_some()
            || attachment.parent.is_some()
            || attachment.handle.is_some();
        let Some(device) = attachment.device.filter(|_| removes) else {
            return Err(verb.error("tc qdisc del: `dev` and `root` are missing"));
        };
        // Of what a device receives nothing is a path that ends here.
        if attachment.ingress.is_some() {
            return Ok(());
        }
        let waits = self.waits;
        let index = self.named.get(&(namespace, device.text)).copied();
        let Some(known) = index.map(|index| &mut self.devices[index]) else { return Ok(()) };
        if attachment.root.is_some() && known.removal.is_none() {
            if let Some(root) = &known.root {
                known.removal = Some(QdiscRemoval { verb, was_used: root.waits != waits });
            }
            return Ok(());
        }
        let child = attachment.parent.map(|(_, parent)| parent);
        let is_child = |(qdisc, _, parent): &&(Qdisc<'t>, ScriptToken<'t>, ClassHandle)| {
            Some(*parent) == child
                || attachment.handle.is_some_and(|handle| qdisc.handle == Some(handle.major))
        };
        match known.children.iter().find(is_child) {
            None => Ok(()),
            Some((qdisc, ..)) => Err(verb.error(format!(
                "`{}` removes `{}` of line {} from the path",
                verb.text, qdisc.kind.text, qdisc.kind.position.line
            ))),
        }
    }

    /// Returns the seeds of netem.
    pub(super) fn seeds(&self) -> Vec<Given<'t, u64>> {
        let qdiscs = self.devices.iter().flat_map(|device| {
            device.root.iter().chain(device.children.iter().map(|(child, ..)| child))
        });
        let seeds = qdiscs.filter_map(|qdisc| match &qdisc.options {
            QdiscOptions::Netem(netem) => netem.seed(),
            _ => None,
        });
        seeds.collect()
    }

    /// Returns a direction for each device that changes packets, with the position of its first
    /// word.
    pub(super) fn directions(&self) -> Result<Vec<ParsedDirection>, ImportError> {
        tree::directions(&self.devices)
    }
}

impl<'t> TcDevice<'t> {
    /// Forgets what a command removed before traffic used it. A path that was used is that of the
    /// script: a command that begins another one is an error.
    fn begin_again(&mut self, kind: ScriptToken<'t>) -> Result<(), ImportError> {
        let Some(removal) = self.removal.take() else { return Ok(()) };
        if removal.was_used {
            return Err(changed(kind, removal.verb.position.line));
        }
        (self.root, self.children, self.classes) = (None, Vec::new(), Vec::new());
        self.filters.retain(|filter| filter.is_ingress);
        Ok(())
    }
}

impl<'t> Qdisc<'t> {
    /// Replaces the options, unless traffic used them before.
    fn replace(&mut self, by: Self) -> Result<(), ImportError> {
        if self.waits != by.waits {
            return Err(changed(by.kind, self.kind.position.line));
        }
        *self = Self { handle: by.handle.or(self.handle), ..by };
        Ok(())
    }
}

/// The error of a path that changes while it is used.
fn changed(token: ScriptToken<'_>, line: usize) -> ImportError {
    let message = format!(
        "`{}` changes the path of line {line} after it was used: a scenario has one",
        token.text
    );
    token.error(message).hint("leave out the commands of the other paths, or import each alone")
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
            // The direction of a filter; of a qdisc it is the kind.
            "ingress" if self.is_filter => self.ingress.replace(word).is_some(),
            "egress" if self.is_filter => false,
            "parent" => {
                let parent = reader.value("a handle such as 1:")?;
                let handle = match parent.text {
                    "root" => ClassHandle { major: 0, minor: 0 },
                    _ => ClassHandle::read(parent)?,
                };
                self.parent.replace((parent, handle)).is_some()
            }
            "handle" => {
                let handle = reader.value("a handle such as 1:")?;
                self.handle.replace(ClassHandle::read(handle)?).is_some()
            }
            "classid" | "flowid" => {
                let handle = reader.value("a class such as 1:10")?;
                self.class.replace((handle, ClassHandle::read(handle)?)).is_some()
            }
            "stab" => {
                let message = "tc: a table of sizes (`stab`) is not supported";
                let hint = "`overhead`, `mpu` and `linklayer` of tbf or htb are";
                return Err(word.error(message).hint(hint));
            }
            _ => return Ok(false),
        };
        if is_second {
            return Err(word.error(format!("`{}` is given twice", word.text)));
        }
        Ok(true)
    }
}

impl ClassHandle {
    /// Reads `1:`, `8001:`, `1:10`, in hexadecimal.
    pub(super) fn read(token: ScriptToken<'_>) -> Result<Self, ImportError> {
        let number = |text: &str| match text {
            "" => Some(0),
            text if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                u16::from_str_radix(text, 16).ok()
            }
            _ => None,
        };
        let parsed = token
            .text
            .split_once(':')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }));
        parsed.ok_or_else(|| token.error(format!("`{}`: expected a handle such as 1:", token.text)))
    }
}

impl core::fmt::Display for ClassHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:x}:{:x}", self.major, self.minor)
    }
}
