//! A guest that is a Linux kernel: User-Mode Linux with `time-travel=ext:` and virtio-net over
//! vhost-user.

mod memory;
mod nic;
pub(crate) mod process;
mod time_travel;

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use units::{Duration, Instant};

use crate::guest::{Guest, GuestError, Outlet, Packet};
use crate::plan::initial_archive;
use crate::results::{GuestTcpInfo, HostResults};
use nic::{Nic, Served};
use process::{Process, RunDirectory};
use time_travel::{NEVER, TimeTravel};

pub use nic::NicCounters;
pub use time_travel::Protocol;

/// The guest's time at the world's time 0, less the phase of its clock: the guest has booted by
/// then. A multiple of every tick, at which `jiffies`, which begins at -300 s, is a multiple of 512
/// for every usual HZ: the buckets of the timer wheel then begin as in the models.
pub const BOOT: Duration = Duration::from_millis(3_040);
/// Seconds of real time without an answer after which a guest counts as dead; tests use less.
pub const PATIENCE: u16 = 60;

/// A kernel to start.
#[derive(Debug, Clone)]
pub struct UmlConfig<'a> {
    /// The kernel, an executable.
    pub kernel: &'a Path,
    /// Process 1, an executable.
    pub init: &'a Path,
    /// Instructions for process 1: [`crate::plan`].
    pub plan: &'a str,
    /// Memory in MiB.
    pub memory: u32,
    /// A word of the command line, which determines the kernel's random numbers.
    pub seed: &'a str,
    /// Phase of the kernel clock within its tick at the world's time 0.
    pub clock_phase: Duration,
    /// The network card splits bursts.
    pub tso: bool,
    /// The card merges packets.
    pub lro: bool,
    /// Largest IP packet.
    pub mtu: u16,
    /// Protocol of the clock.
    pub protocol: Protocol,
    /// Seconds of real time without an answer after which the guest counts as dead.
    pub patience: u16,
}

/// A running kernel.
#[derive(Debug)]
pub struct UmlGuest {
    clock: TimeTravel,
    nic: Option<Nic>,
    listener: Option<UnixListener>,
    /// The guest offered buffers while packets waited for them.
    has_buffers: bool,
    offset: Duration,
    patience: u16,
    results: HostResults,
    process: Process,
    /// Dropped last, which removes the directory.
    _directory: RunDirectory,
}

/// A name for the directory of a guest, different from all others.
pub(crate) fn next_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("ackclock-guest-{}-{number}", std::process::id())
}

/// Discards packets that a guest sends before the world's time 0, such as router solicitations.
struct Discard;

impl Outlet for Discard {
    fn send(&mut self, _: Instant, _: &Packet<'_>) -> Instant {
        Instant::MAX
    }
}

impl UmlGuest {
    /// Boots a kernel up to the world's time 0.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn boot(config: &UmlConfig<'_>) -> Result<Self, GuestError> {
        let directory = RunDirectory::new(&run_directory(), &next_name())
            .map_err(GuestError::system("the directory of a guest"))?;
        let path = directory.path();
        let init = fs::read(config.init)
            .map_err(|error| GuestError::Start { program: config.init.to_owned(), error })?;
        let archive = initial_archive(&init, config.plan.as_bytes());
        let bind = |name: &str| UnixListener::bind(path.join(name));
        let clock_listener = bind("tt").map_err(GuestError::system("the socket of a guest"))?;
        let nic_listener = bind("vu").map_err(GuestError::system("the socket of a guest"))?;
        fs::write(path.join("initrd"), archive)
            .map_err(GuestError::system("the first file system of a guest"))?;
        let kernel = fs::canonicalize(config.kernel)
            .map_err(|error| GuestError::Start { program: config.kernel.to_owned(), error })?;
        let mut process = Process::start(&kernel, &arguments(config), path)?;
        let stream = connection(&clock_listener, &mut process, config.patience)?;
        let clock = TimeTravel::new(stream, config.protocol)?;
        let mut guest = Self {
            clock,
            nic: None,
            listener: Some(nic_listener),
            has_buffers: false,
            offset: Duration::from_nanos(BOOT.as_nanos() + config.clock_phase.as_nanos()),
            patience: config.patience,
            results: HostResults {
                begins: Duration::from_nanos(BOOT.as_nanos() + config.clock_phase.as_nanos()),
                ..HostResults::default()
            },
            process,
            _directory: directory,
        };
        let mtu = config.mtu;
        let booted = guest.start_up(|stream| Nic::new(stream, config.tso, config.lro, mtu));
        booted.map_err(|error| guest.explain(error))?;
        Ok(guest)
    }

    /// Returns the results of a script's system calls that have come since.
    pub(crate) fn take_calls(&mut self) -> Vec<String> {
        core::mem::take(&mut self.results.calls)
    }

    /// Returns the counters of the network card.
    pub fn nic_counters(&self) -> NicCounters {
        self.nic.as_ref().map(|nic| nic.counters).unwrap_or_default()
    }

    fn start_up(&mut self, card: impl Fn(UnixStream) -> Nic) -> Result<(), GuestError> {
        self.serve_until_it_waits(NEVER, &mut Discard, Some(&card))?;
        let start = self.offset.as_nanos();
        loop {
            let at = self.deadline()?;
            if at >= start {
                break;
            }
            // Before its applications are ready the guest may not run ahead of the world.
            let limit = if self.results.ready { start } else { at };
            self.step(at, limit, &mut Discard, Some(&card))?;
        }
        if !self.results.ready {
            return Err(GuestError::protocol("its process 1 did not get ready"));
        }
        Ok(())
    }

    /// Returns the guest's time at an instant of the world.
    fn local(&self, at: Instant) -> u64 {
        at.as_nanos().saturating_add(self.offset.as_nanos()).min(NEVER)
    }

    /// Returns the instant of the world at a time of the guest.
    fn world(&self, at: u64) -> Instant {
        match at {
            NEVER.. => Instant::MAX,
            at => Instant::from_nanos(at.saturating_sub(self.offset.as_nanos())),
        }
    }

    /// Returns the next deadline, in the guest's time.
    fn deadline(&mut self) -> Result<u64, GuestError> {
        let card_has_work = self
            .nic
            .as_ref()
            .is_some_and(|nic| nic.has_sent() || (self.has_buffers && nic.has_waiting()));
        if card_has_work { self.clock.now() } else { Ok(self.clock.deadline()) }
    }

    /// Lets the kernel run at `now`.
    fn step(
        &mut self,
        now: u64,
        limit: u64,
        outlet: &mut dyn Outlet,
        card: Option<&dyn Fn(UnixStream) -> Nic>,
    ) -> Result<(), GuestError> {
        if let Some(nic) = &mut self.nic {
            let sent = nic.has_sent() && nic.complete_transmits()?;
            let received = core::mem::take(&mut self.has_buffers) && nic.fill()?;
            if sent {
                self.interrupt(now, true)?;
            }
            if received {
                self.interrupt(now, false)?;
            }
        }
        if self.clock.deadline() > now {
            return Ok(());
        }
        self.clock.run(now, limit)?;
        self.serve_until_it_waits(limit, outlet, card)
    }

    /// Serves both sockets until the kernel waits to run. `card` creates the network card if there
    /// is none.
    fn serve_until_it_waits(
        &mut self,
        limit: u64,
        outlet: &mut dyn Outlet,
        card: Option<&dyn Fn(UnixStream) -> Nic>,
    ) -> Result<(), GuestError> {
        let mut limit = limit;
        while !self.clock.waits() {
            let card_fd = match (&self.nic, &self.listener) {
                (Some(nic), _) => Some(nic.as_fd()),
                (None, Some(listener)) => Some(listener.as_fd()),
                (None, None) => None,
            };
            let [card_is_ready, clock_is_ready] = if self.nic.as_ref().is_some_and(Nic::has_message)
            {
                [true, false]
            } else {
                ready([card_fd, Some(self.clock.as_fd())], self.patience)?
            };
            // What it has written to its card comes before what it says of its clock.
            if card_is_ready {
                self.serve_card(&mut limit, outlet, card)?;
            } else if clock_is_ready {
                self.clock.serve()?;
            }
        }
        self.clock.settle()?;
        let results = &mut self.results;
        self.process
            .console
            .read_lines(|line| results.read_line(line))
            .map_err(GuestError::system("the console of a guest"))?;
        match self.results.error.take() {
            Some(message) => Err(GuestError::Init { message }),
            None => Ok(()),
        }
    }

    fn serve_card(
        &mut self,
        limit: &mut u64,
        outlet: &mut dyn Outlet,
        card: Option<&dyn Fn(UnixStream) -> Nic>,
    ) -> Result<(), GuestError> {
        if self.nic.is_none() {
            let listener = self.listener.take();
            let accepted = listener.map(|listener| listener.accept()).transpose();
            let accepted = accepted.map_err(GuestError::system("the socket of a guest"))?;
            self.nic = accepted.zip(card).map(|((stream, _), card)| card(stream));
            return Ok(());
        }
        let now = self.clock.now()?;
        let at = self.world(now);
        let Some(nic) = &mut self.nic else { return Ok(()) };
        let served = nic.serve();
        match served? {
            Served::Nothing => {}
            Served::Buffers => self.has_buffers = true,
            Served::Transmits(kick) => {
                let Some(nic) = &mut self.nic else { return Ok(()) };
                let mut least = Instant::MAX;
                nic.transmit(|packet| least = least.min(outlet.send(at, packet)))?;
                // The descriptor chains are returned at the same time, so the guest must not run
                // past it.
                let shorter = if nic.has_sent() { now } else { self.local(least) };
                if shorter < *limit {
                    *limit = shorter;
                    self.clock.shorten(shorter)?;
                }
                if let Some(nic) = &self.nic {
                    nic.answer(kick, None)?;
                }
            }
        }
        Ok(())
    }

    /// Interrupts the waiting guest for one ring.
    fn interrupt(&mut self, now: u64, transmit: bool) -> Result<(), GuestError> {
        self.clock.interrupt_at(now)?;
        let Some(nic) = &mut self.nic else { return Ok(()) };
        nic.call(transmit)?;
        loop {
            let Some(nic) = &self.nic else { return Ok(()) };
            let fds = [Some(self.clock.as_fd()), nic.calls_fd()];
            let [clock_is_ready, call_is_ready] = ready(fds, self.patience)?;
            if clock_is_ready {
                self.clock.serve()?;
            } else if call_is_ready {
                nic.finish_call()?;
                return self.clock.read_request();
            }
        }
    }

    /// Adds its exit status and console to an error.
    fn explain(&mut self, error: GuestError) -> GuestError {
        self.process.explain(error)
    }

    fn receive_all(&mut self, now: Instant, packets: &[Packet<'_>]) -> Result<(), GuestError> {
        let now = self.local(now);
        let Some(nic) = &mut self.nic else { return Ok(()) };
        packets.iter().for_each(|packet| nic.arrive(packet));
        if nic.fill()? { self.interrupt(now, false) } else { Ok(()) }
    }
}

impl Guest for UmlGuest {
    fn next_deadline(&mut self) -> Result<Instant, GuestError> {
        let deadline = self.deadline().map_err(|error| self.explain(error))?;
        Ok(self.world(deadline))
    }

    fn receive(&mut self, now: Instant, packets: &[Packet<'_>]) -> Result<(), GuestError> {
        let received = self.receive_all(now, packets);
        received.map_err(|error| self.explain(error))
    }

    fn run(
        &mut self,
        now: Instant,
        limit: Instant,
        outlet: &mut dyn Outlet,
    ) -> Result<(), GuestError> {
        let (now, limit) = (self.local(now), self.local(limit));
        let run = self.step(now, limit, outlet, None);
        run.map_err(|error| self.explain(error))
    }

    fn is_finished(&self) -> bool {
        self.results.done
    }

    fn results(&self) -> &HostResults {
        &self.results
    }

    fn take_samples(&mut self, each: &mut dyn FnMut(Instant, GuestTcpInfo)) {
        for sample in core::mem::take(&mut self.results.samples) {
            each(self.world(sample.at.as_nanos()), sample);
        }
    }
}

/// Returns the parent of the guests' directories: names of sockets in them must be short.
pub(crate) fn run_directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Returns the command line. It is the same in every run: its text is part of the kernel's entropy.
fn arguments(config: &UmlConfig<'_>) -> Vec<String> {
    let memory = format!("mem={}M", config.memory);
    let seed = format!("ackclock.seed={}", config.seed);
    [
        &memory,
        "initrd=initrd",
        "umid=guest",
        "uml_dir=./",
        "con0=null,fd:1",
        "con=null",
        "ssl=null",
        "quiet",
        "panic=-1",
        "time-travel=ext:0:tt",
        "virtio_uml.device=vu:1",
        &seed,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Waits for the connection of a process, which may end instead.
fn connection(
    listener: &UnixListener,
    process: &mut Process,
    patience: u16,
) -> Result<UnixStream, GuestError> {
    for _ in 0..10 * u32::from(patience) {
        let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::from(100_u16);
        let ready = poll(&mut fds, timeout).map_err(GuestError::errno("the socket of a guest"))?;
        if ready > 0 {
            let accepted = listener.accept();
            return Ok(accepted.map_err(GuestError::system("the socket of a guest"))?.0);
        }
        if let Some(status) = process.ended() {
            return Err(GuestError::Ended { status, console: process.console.tail() });
        }
    }
    Err(GuestError::Silent { seconds: patience, console: process.console.tail() })
}

/// Waits until one of two descriptors is readable.
fn ready(fds: [Option<BorrowedFd<'_>>; 2], patience: u16) -> Result<[bool; 2], GuestError> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().flatten().map(|&fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let timeout = PollTimeout::from(patience.saturating_mul(1_000));
    loop {
        match poll(&mut polled, timeout) {
            Ok(0) => return Err(GuestError::Silent { seconds: patience, console: String::new() }),
            Ok(_) => break,
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(GuestError::errno("the sockets of a guest")(error)),
        }
    }
    let mut events = polled.iter().map(|fd| fd.any().unwrap_or(false));
    Ok(fds.map(|fd| fd.is_some() && events.next().unwrap_or(false)))
}
