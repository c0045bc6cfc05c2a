//! epoll (fs/eventpoll.c of Linux): level-triggered, edge-triggered and one-shot.
//!
//! Edge-triggered, a socket is reported again only after it has signalled the application; all
//! events that hold then are reported, not only the new one.

use super::calls::{CallResult, names, number, words};
use super::sockets::Watch;
use super::{Result, Runner, ScriptStop};
use crate::ast::{Expr, ExprKind, SystemCall};

use CallResult::{Blocks, Error, Value};

/// Flags among the events.
const FLAGS: [&str; 4] = ["EPOLLET", "EPOLLONESHOT", "EPOLLEXCLUSIVE", "EPOLLWAKEUP"];

impl Runner<'_> {
    pub(super) fn epoll_create(&mut self, call: &SystemCall) -> CallResult {
        if call.name.value == "epoll_create" && number(call, 0) <= 0 {
            return Error("EINVAL");
        }
        let ExprKind::Int(fd) = call.result.kind else { return Value(0) };
        self.sockets.epolls.insert(fd, Vec::new());
        Value(fd)
    }

    pub(super) fn epoll_ctl(&mut self, call: &SystemCall) -> Result<CallResult> {
        let Some(operation) = call.args.get(1) else {
            return self.unsupported(call.name.span, "`epoll_ctl` lacks its operation");
        };
        let fd = number(call, 2);
        if self.sockets.get(fd).is_none() {
            return Ok(Error("EBADF"));
        }
        let Some(watched) = self.sockets.epolls.get_mut(&number(call, 0)) else {
            return Ok(Error("EBADF"));
        };
        let place = watched.iter().position(|watch| watch.fd == fd);
        let events = call.args.get(3).and_then(|event| field(event, "events"));
        let events: Vec<String> =
            events.map(words).unwrap_or_default().into_iter().map(str::to_owned).collect();
        let watch = Watch { fd, events, seen: None };
        match (operation, place) {
            (operation, None) if names(operation, "EPOLL_CTL_ADD") => watched.push(watch),
            (operation, Some(_)) if names(operation, "EPOLL_CTL_ADD") => {
                return Ok(Error("EEXIST"));
            }
            (_, None) => return Ok(Error("ENOENT")),
            (operation, Some(at)) if names(operation, "EPOLL_CTL_MOD") => watched[at] = watch,
            (_, Some(at)) => {
                watched.remove(at);
            }
        }
        Ok(Value(0))
    }

    pub(super) fn epoll_wait(&mut self, call: &SystemCall) -> Result<CallResult> {
        let epoll = number(call, 0);
        let Some(watched) = self.sockets.epolls.get(&epoll).cloned() else {
            return Ok(Error("EBADF"));
        };
        let signals = self.world.signals;
        let mut ready = Vec::new();
        for watch in &watched {
            let wanted = |event: &str| {
                matches!(event, "EPOLLERR" | "EPOLLHUP")
                    || watch.events.iter().any(|named| named == event)
            };
            let found: Vec<String> = self
                .poll_events(Some(watch.fd))
                .into_iter()
                .map(|event| format!("E{event}"))
                .filter(|event| wanted(event))
                .collect();
            let flag = |flag: &str| watch.events.iter().any(|named| named == flag);
            let silent = flag("EPOLLET") && watch.seen == Some(signals);
            let only_flags = watch.events.iter().all(|event| FLAGS.contains(&event.as_str()));
            if !found.is_empty() && !silent && !only_flags {
                ready.push((watch.fd, found));
            }
        }
        ready.truncate(usize::try_from(number(call, 2)).unwrap_or(usize::MAX));
        if ready.is_empty() {
            return Ok(if number(call, 3) == 0 { Value(0) } else { Blocks });
        }
        if let Some(watched) = self.sockets.epolls.get_mut(&epoll) {
            for watch in watched.iter_mut() {
                if ready.iter().any(|(fd, _)| *fd == watch.fd) {
                    watch.seen = Some(signals);
                    if watch.events.iter().any(|event| event == "EPOLLONESHOT") {
                        watch.events.retain(|event| FLAGS.contains(&event.as_str()));
                    }
                }
            }
        }
        let expected = match call.args.get(1) {
            Some(Expr { kind: ExprKind::List(list), .. }) => list.as_slice(),
            Some(one) => core::slice::from_ref(one),
            None => &[],
        };
        for ((_, found), expected) in ready.iter().zip(expected) {
            let Some(events) = field(expected, "events") else { continue };
            let mut wanted = words(events);
            let mut got: Vec<&str> = found.iter().map(String::as_str).collect();
            wanted.sort_unstable();
            got.sort_unstable();
            if wanted != got && wanted != ["..."] {
                let error = self.at(events.span, "`epoll_wait` finds something else");
                let error = error.expected(wanted.join("|")).found(got.join("|"));
                return Err(ScriptStop::Failed(error));
            }
        }
        Ok(Value(i64::try_from(ready.len()).unwrap_or(i64::MAX)))
    }
}

/// Returns a field of `{events=EPOLLIN, fd=4}`, possibly passed by pointer.
pub(super) fn field<'e>(event: &'e Expr, name: &str) -> Option<&'e Expr> {
    match &event.kind {
        ExprKind::List(values) if values.len() == 1 => field(&values[0], name),
        ExprKind::Struct(fields) => {
            fields.iter().find(|(field, _)| field.as_deref() == Some(name)).map(|(_, value)| value)
        }
        _ => None,
    }
}
