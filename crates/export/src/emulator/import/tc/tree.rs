//! The way of a packet through the qdiscs and classes of a device.

use std::collections::BTreeMap;

use super::super::element::{ParsedDirection, PathElement};
use super::super::htb::{HtbClass, PrioOptions};
use super::super::rate_limit::RateLimit;
use super::super::tokens::{ImportError, ScriptToken};
use super::{ClassHandle, Qdisc, QdiscOptions, TcDevice};

/// Returns a direction for each device that changes packets.
pub(super) fn directions(devices: &[TcDevice<'_>]) -> Result<Vec<ParsedDirection>, ImportError> {
    // Devices to which filters redirect what another receives.
    let mut redirects: BTreeMap<&str, ScriptToken<'_>> = BTreeMap::new();
    for filter in devices.iter().flat_map(|device| &device.filters) {
        if let Some(target) = filter.redirect {
            redirects.insert(target.text, target);
        }
    }
    let names: Vec<&str> = devices.iter().map(|device| device.name).collect();
    if let Some((_, target)) = redirects.iter().find(|(name, _)| !names.contains(*name)) {
        let message = format!("device `{}` has no qdisc in this text", target.text);
        return Err(target.error(message));
    }
    let mut directions = Vec::new();
    for device in devices {
        directions.extend(incoming(device)?);
        directions.extend(DeviceTree { device }.outgoing()?);
    }
    Ok(directions)
}

/// Returns the direction of the packets that a device receives, if a filter limits them.
fn incoming(device: &TcDevice<'_>) -> Result<Option<ParsedDirection>, ImportError> {
    let filters = device.filters.iter().filter(|filter| filter.is_ingress);
    let limits: Vec<_> = filters.clone().filter_map(|filter| filter.police.as_ref()).collect();
    if let Some(ingress) = device.ingress
        && device.filters.is_empty()
    {
        return Err(ingress.error(format!("no filter uses the qdisc `{}`", ingress.text)));
    }
    match limits.as_slice() {
        [] => Ok(None),
        [police] => {
            let elements = vec![police.element()];
            let position = police.rate.token.position;
            let namespace = device.namespace.to_owned();
            Ok(Some(ParsedDirection { position, elements, namespace, is_loopback: false }))
        }
        [_, second, ..] => {
            let message = "the second policer of a device is not supported";
            Err(second.rate.token.error(message))
        }
    }
}

struct DeviceTree<'d, 't> {
    device: &'d TcDevice<'t>,
}

/// What a packet met so far.
#[derive(Default)]
struct Visited {
    children: Vec<usize>,
    classes: Vec<ClassHandle>,
}

impl<'t> DeviceTree<'_, 't> {
    fn outgoing(&self) -> Result<Option<ParsedDirection>, ImportError> {
        let device = self.device;
        let Some(root) = &device.root else {
            if let Some((_, parent, _)) = device.children.first() {
                return Err(no_parent(*parent));
            }
            if let Some(class) = device.classes.first() {
                return Err(class.token.error(format!("class {} has no qdisc", class.handle)));
            }
            let filter = device.filters.iter().find(|filter| !filter.is_ingress);
            return match filter {
                Some(filter) => Err(filter.kind.error("the device of this filter has no qdisc")),
                None => Ok(None),
            };
        };
        let mut visited = Visited::default();
        let mut elements: Vec<PathElement> = device
            .filters
            .iter()
            .filter(|filter| !filter.is_ingress)
            .filter_map(|filter| filter.police.as_ref().map(|police| police.element()))
            .collect();
        elements.extend(self.elements(root, &mut visited)?);
        self.all_visited(root, &visited)?;
        if elements.is_empty() {
            return match &root.options {
                QdiscOptions::Queue { is_default: false, .. } => Err(without_rate(root)),
                QdiscOptions::Netem(_) | QdiscOptions::Prio(_) => Err(root
                    .kind
                    .error(format!("`{}` without options does not change a path", root.kind.text))),
                _ => Ok(None),
            };
        }
        let is_loopback = device.name == "lo";
        let (position, namespace) = (root.kind.position, device.namespace.to_owned());
        Ok(Some(ParsedDirection { position, elements, namespace, is_loopback }))
    }

    /// Reports a qdisc or a class that no packet reaches.
    fn all_visited(&self, root: &Qdisc<'t>, visited: &Visited) -> Result<(), ImportError> {
        let unvisited = self
            .device
            .children
            .iter()
            .enumerate()
            .find(|(index, _)| !visited.children.contains(index));
        if let Some((_, (child, parent, handle))) = unvisited {
            let known = |major: u16| {
                root.handle == Some(major)
                    || self.device.children.iter().any(|(one, ..)| one.handle == Some(major))
            };
            if !known(handle.major) || handle.major == 0 {
                return Err(no_parent(*parent));
            }
            let message = format!(
                "`{}` below {handle}: no packet of the path reaches it, or another qdisc is there",
                child.kind.text
            );
            return Err(child.kind.error(message));
        }
        let class =
            self.device.classes.iter().find(|class| !visited.classes.contains(&class.handle));
        match class {
            None => Ok(()),
            Some(class) => {
                let message = format!("class {} is not part of a tree of htb", class.handle);
                Err(class.token.error(message))
            }
        }
    }

    /// Returns the qdisc below a handle.
    fn below(&self, handle: ClassHandle, visited: &mut Visited) -> Option<&Qdisc<'t>> {
        let mut children = self.device.children.iter().enumerate();
        let (index, (child, ..)) = children.find(|(_, (.., parent))| *parent == handle)?;
        visited.children.push(index);
        Some(child)
    }

    /// Returns the qdisc below a qdisc with one class, which scripts call 1: or 1:1.
    fn only_child(&self, qdisc: &Qdisc<'t>, visited: &mut Visited) -> Option<&Qdisc<'t>> {
        let major = qdisc.handle.filter(|&major| major != 0)?;
        let minors = [0, 1];
        minors.iter().find_map(|&minor| self.below(ClassHandle { major, minor }, visited))
    }

    fn elements(
        &self,
        qdisc: &Qdisc<'t>,
        visited: &mut Visited,
    ) -> Result<Vec<PathElement>, ImportError> {
        match &qdisc.options {
            QdiscOptions::NoQueue if qdisc.kind.text == "mq" => self.queues(qdisc, visited),
            QdiscOptions::NoQueue | QdiscOptions::Queue { .. } => Ok(Vec::new()),
            QdiscOptions::Netem(netem) => {
                let mut elements = netem.elements(qdisc.kind);
                if let Some(child) = self.only_child(qdisc, visited) {
                    elements.extend(self.elements(child, visited)?);
                    if let Some(last) = elements.pop() {
                        let note = match &child.options {
                            // Packets leave netem at its rate: they are not queued after it.
                            QdiscOptions::Queue { model, .. } => format!(
                                "no packet waits in `{}` below netem ({}, {})",
                                child.kind.text,
                                model.buffer,
                                model.queue.as_deref().unwrap_or("drop-tail")
                            ),
                            _ => "netem's limit counts the packets in the qdisc below it, too"
                                .to_owned(),
                        };
                        elements.push(last.comment(note));
                    }
                }
                Ok(elements)
            }
            QdiscOptions::Tbf(tbf) => {
                let child = self.only_child(qdisc, visited);
                self.limited(qdisc, tbf.bucket(), child, visited)
            }
            QdiscOptions::Htb(htb) => {
                let major = qdisc.handle.unwrap_or(0);
                let (bucket, leaf) = self.htb_leaf(qdisc, major, htb.default, visited)?;
                let child = self.below(leaf, visited);
                self.limited(qdisc, bucket, child, visited)
            }
            QdiscOptions::Prio(prio) => self.band(qdisc, prio, visited),
        }
    }

    /// Returns the elements of a transmit queue of a device with several (mq): a flow uses one of them,
    /// so all need the same. `tc qdisc show` prints their parents as `:1`, without the handle of mq.
    fn queues(
        &self,
        mq: &Qdisc<'t>,
        visited: &mut Visited,
    ) -> Result<Vec<PathElement>, ImportError> {
        let major = mq.handle.unwrap_or(0);
        let of_queue =
            |handle: ClassHandle| handle.minor != 0 && (handle.major == major || handle.major == 0);
        let mut first: Option<Vec<PathElement>> = None;
        for (index, (child, _, parent)) in self.device.children.iter().enumerate() {
            if !of_queue(*parent) {
                continue;
            }
            visited.children.push(index);
            let elements = self.elements(child, visited)?;
            let texts = |elements: &[PathElement]| -> Vec<String> {
                elements.iter().map(|element| element.toml.clone()).collect()
            };
            if first.as_ref().is_some_and(|first| texts(first) != texts(&elements)) {
                let message = "the queues of `mq` differ: a flow uses one of them";
                let hint = "leave out those of other traffic";
                return Err(child.kind.error(message).hint(hint));
            }
            first.get_or_insert(elements);
        }
        Ok(first.unwrap_or_default())
    }

    /// Returns the elements of a token bucket and the qdisc below it.
    fn limited(
        &self,
        qdisc: &Qdisc<'t>,
        bucket: RateLimit<'t>,
        child: Option<&Qdisc<'t>>,
        visited: &mut Visited,
    ) -> Result<Vec<PathElement>, ImportError> {
        let Some(child) = child else { return Ok(vec![bucket.alone()]) };
        match &child.options {
            QdiscOptions::Netem(netem) => {
                let Some(below) = self.only_child(child, visited) else {
                    return bucket.below_netem(netem, child.kind);
                };
                let mut elements = netem.elements(child.kind);
                match &below.options {
                    // Delayed packets wait for the rate above in the qdisc below netem.
                    QdiscOptions::Queue { model, .. } => {
                        elements.push(bucket.with_queue(model.clone()));
                    }
                    QdiscOptions::Tbf(tbf) => {
                        let inner = tbf.bucket();
                        if inner.rate.value > bucket.rate.value {
                            let message = "`tbf` below netem is faster than the rate above: its queue and \
                                           that of the rate above are one";
                            return Err(below.kind.error(message).hint("leave one of them out"));
                        }
                        if let Some(third) = self.only_child(below, visited) {
                            return Err(nested(below, third));
                        }
                        elements.push(inner.alone());
                        elements.push(bucket.after_slower(netem.packets()));
                    }
                    _ => return Err(nested(child, below)),
                }
                if let Some(last) = elements.pop() {
                    let note = format!(
                        "netem's limit of {} counts the packets in the qdisc below it, too",
                        netem.packets()
                    );
                    elements.push(last.comment(note));
                }
                Ok(elements)
            }
            QdiscOptions::Queue { model, .. } => Ok(vec![bucket.with_queue(model.clone())]),
            _ => Err(nested(qdisc, child)),
        }
    }

    /// Returns the only class at the end of a tree of htb, and the rate that it has.
    fn htb_leaf(
        &self,
        qdisc: &Qdisc<'t>,
        major: u16,
        default: Option<u16>,
        visited: &mut Visited,
    ) -> Result<(RateLimit<'t>, ClassHandle), ImportError> {
        let classes: Vec<_> =
            self.device.classes.iter().filter(|class| class.handle.major == major).collect();
        let is_leaf = |handle: ClassHandle| classes.iter().all(|one| one.parent != Some(handle));
        let leaves: Vec<_> = classes.iter().filter(|class| is_leaf(class.handle)).collect();
        let leaf = match leaves.as_slice() {
            [] => {
                let error = qdisc.kind.error("htb has no class: it limits no packet");
                return Err(error.hint("add what `tc class show dev DEVICE` prints"));
            }
            [leaf] => **leaf,
            [.., last] => {
                let class = self.class_of_all(major, default);
                let leaf = leaves.iter().find(|leaf| Some(leaf.handle) == class);
                let Some(leaf) = leaf else {
                    let message = format!(
                        "htb has {} classes at the ends of its tree; a path has one for all \
                         packets",
                        leaves.len()
                    );
                    let hint = "leave out the classes and filters of other traffic";
                    return Err(last.token.error(message).hint(hint));
                };
                // No packet has the others.
                for other in &classes {
                    visited.classes.push(other.handle);
                    if other.handle != leaf.handle {
                        self.below(other.handle, visited);
                    }
                }
                **leaf
            }
        };
        let targets: Vec<_> = self.targets(major).collect();
        let selected = targets.contains(&leaf.handle);
        if !selected && default != Some(leaf.handle.minor) {
            let message = format!(
                "no packet reaches class {}: `default` of htb is another, and no filter names it",
                leaf.handle
            );
            return Err(leaf.token.error(message));
        }
        let mut chain = vec![leaf];
        // A parent that does not exist is none (`htb_change_class`), and many scripts name one.
        while let Some(parent) = chain.last().and_then(|class| class.parent)
            && let Some(class) = classes.iter().find(|class| class.handle == parent)
        {
            if chain.iter().any(|known| known.handle == parent) {
                return Err(class.token.error(format!("class {parent} is above itself")));
            }
            chain.push(class);
        }
        chain.reverse();
        visited.classes.extend(chain.iter().map(|class| class.handle));
        let ancestors: Vec<&HtbClass<'t>> = chain.iter().map(|class| &class.htb).collect();
        let Some(mut bucket) = HtbClass::limit(&ancestors) else {
            return Err(leaf.token.error("htb: the class has no rate"));
        };
        if default != Some(leaf.handle.minor) {
            bucket.notes.push("for the packets that the filter selects".to_owned());
        } else if leaves.len() > 1 && !targets.is_empty() {
            bucket
                .notes
                .push(format!("class {}: for the packets that no filter selects", leaf.handle));
        }
        Ok((bucket, leaf.handle))
    }

    /// Returns the class of packets that no filter with conditions selects: that of a filter that selects
    /// all, or the default.
    fn class_of_all(&self, major: u16, default: Option<u16>) -> Option<ClassHandle> {
        let mut filters = self.device.filters.iter().filter(|filter| !filter.is_ingress);
        // A filter after it has no packets.
        match filters.find(|filter| filter.selects_all) {
            Some(all) => all.class,
            None => default.map(|minor| ClassHandle { major, minor }),
        }
    }

    /// Returns the classes to which filters lead.
    fn targets(&self, major: u16) -> impl Iterator<Item = ClassHandle> {
        let filters = self.device.filters.iter().filter(|filter| !filter.is_ingress);
        let targets = filters.filter_map(|filter| filter.class);
        targets.map(move |class| match class.major {
            0 => ClassHandle { major, ..class },
            _ => class,
        })
    }

    /// Returns the elements of the band of prio that a filter selects, or that best effort has.
    fn band(
        &self,
        qdisc: &Qdisc<'t>,
        prio: &PrioOptions,
        visited: &mut Visited,
    ) -> Result<Vec<PathElement>, ImportError> {
        let major = qdisc.handle.unwrap_or(0);
        let mut selected: Vec<ClassHandle> =
            self.targets(major).filter(|class| class.major == major).collect();
        selected.dedup();
        let used: Vec<ClassHandle> = (self.device.children.iter())
            .map(|(.., parent)| *parent)
            .filter(|parent| parent.major == major && prio.has(parent.minor))
            .collect();
        let band = match (selected.as_slice(), used.as_slice()) {
            ([], _) => prio.default(major),
            ([one], _) => *one,
            // Of several bands, the one with a qdisc.
            (several, [one]) if several.contains(one) => *one,
            _ => {
                let message = "filters lead to several bands of prio; a path has one";
                let hint = "leave out the filters of other traffic";
                return Err(qdisc.kind.error(message).hint(hint));
            }
        };
        let Some(child) = self.below(band, visited) else {
            let message = format!("band {band} of prio, which the packets have, has no qdisc");
            return Err(qdisc.kind.error(message).hint("leave prio out"));
        };
        let mut elements = self.elements(child, visited)?;
        if elements.is_empty() {
            return Err(without_rate(child));
        }
        if let Some(last) = elements.pop() {
            elements.push(match selected.is_empty() {
                true => last,
                false => last.comment("for the packets that the filter selects".to_owned()),
            });
        }
        Ok(elements)
    }
}

fn nested(parent: &Qdisc<'_>, child: &Qdisc<'_>) -> ImportError {
    let (parent, child_kind) = (parent.kind.text, child.kind.text);
    child.kind.error(format!("`{child_kind}` below `{parent}` is not supported"))
}

fn without_rate(qdisc: &Qdisc<'_>) -> ImportError {
    let kind = qdisc.kind.text;
    let error = qdisc.kind.error(format!("`{kind}` has no rate above it: no packet waits in it"));
    error.hint("put it below htb or tbf with the rate of the line, or leave it out")
}

fn no_parent(parent: ScriptToken<'_>) -> ImportError {
    let message =
        format!("parent `{}` is no qdisc or class of the device in this text", parent.text);
    parent.error(message)
}
