//! A library in memory: its description, and a call of its function.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use cc::external::ControllerError;
use cc::kernel::{ABI, KernelLibrary, KernelOp, KernelSock, KernelTraits};

use crate::process::{self, Ended};

/// `struct ackclock_cc_info`.
#[repr(C)]
struct Info {
    abi: u32,
    size: u32,
    ops: u32,
    flags: u32,
    hz: u32,
    reserved: u32,
    name: *const c_char,
}

/// `ACKCLOCK_CC_NEEDS_RATES`
const NEEDS_RATES: u32 = 4;

type InfoFunction = unsafe extern "C" fn() -> *const Info;
/// `ackclock_cc_call_v1`.
pub(crate) type CallFunction = unsafe extern "C" fn(*mut KernelSock, u32) -> u32;

/// What passes between the processes: an operation or its result, and the connection.
#[derive(Debug, Clone)]
#[repr(C)]
pub(crate) struct Message {
    pub(crate) word: u64,
    pub(crate) sock: KernelSock,
}

/// Memory in which the process of a library works: at the same address in every copy of this process, so that pointers
/// into a connection stay valid from one to the next.
#[derive(Debug)]
struct WorkingMemory(UnsafeCell<Message>);

#[expect(unsafe_code, reason = "only a child with a single thread uses the memory")]
// SAFETY: no thread of this process reads or writes it.
unsafe impl Sync for WorkingMemory {}

/// A loaded library.
#[derive(Debug)]
pub(crate) struct Library {
    name: &'static str,
    number: u64,
    call: CallFunction,
    traits: KernelTraits,
    own_name: &'static str,
    in_process: bool,
    working: WorkingMemory,
}

impl Library {
    /// Loads the library in the file; `name` is that in scenarios, `number` is unique.
    pub(crate) fn load(
        name: &'static str,
        file: &Path,
        number: u64,
        in_process: bool,
    ) -> Result<Self, String> {
        // A child loads it first: what its initialization does wrong ends that.
        process::probe(|| describe(file).map(|_| ())).map_err(|ended| match ended {
            Ended::Refused => describe(file).err().unwrap_or_else(|| "cannot load it".to_owned()),
            Ended::Fault(what) => format!("{what} while it was loaded"),
        })?;
        let (call, traits, own_name) = describe(file)?;
        let own_name: &'static str = Box::leak(own_name.into_boxed_str());
        let working = KernelSock::empty();
        let working = WorkingMemory(UnsafeCell::new(Message { word: 0, sock: working }));
        Ok(Self { name, number, call, traits, own_name, in_process, working })
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn function(&self) -> CallFunction {
        self.call
    }

    pub(crate) const fn working(&self) -> *mut Message {
        self.working.0.get()
    }
}

impl KernelLibrary for Library {
    fn name(&self) -> &'static str {
        self.name
    }

    fn own_name(&self) -> &'static str {
        self.own_name
    }

    fn traits(&self) -> KernelTraits {
        self.traits
    }

    #[inline]
    fn call(&self, op: KernelOp, sock: &mut KernelSock) -> Result<u32, ControllerError> {
        if self.in_process {
            #[expect(unsafe_code, reason = "a function in C")]
            // SAFETY: the layout is that of ackclock-cc.h (a test compares them), the library was built against it
            // (`describe` checks the version and the size), and the user has chosen to run it in this process.
            return Ok(unsafe { (self.call)(sock, op as u32) });
        }
        process::call(self, op, sock)
    }
}

/// A description of the last failure of the loader.
fn loader_error() -> String {
    #[expect(unsafe_code, reason = "dlerror is a function in C")]
    // SAFETY: it returns a text or null, which is copied at once.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            None
        } else {
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    text.unwrap_or_else(|| "the loader gives no reason".to_owned())
}

fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    #[expect(unsafe_code, reason = "dlsym is a function in C")]
    // SAFETY: `handle` is of dlopen and never closed.
    let at = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if at.is_null() {
        let name = name.to_string_lossy();
        return Err(format!(
            "it is no congestion controller: it has no function `{name}` (`ackclock cc build` makes one of a C file)"
        ));
    }
    Ok(at)
}

/// Loads the file and asks it what it is.
#[expect(unsafe_code, reason = "functions of a library in C")]
fn describe(file: &Path) -> Result<(CallFunction, KernelTraits, String), String> {
    let path = CString::new(file.as_os_str().as_bytes())
        .map_err(|_| "its name has a zero byte".to_owned())?;
    // SAFETY: a valid text; the library is never closed.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(format!("cannot load it: {}", loader_error()));
    }
    let info = symbol(handle, c"ackclock_cc_info_v1")?;
    let call = symbol(handle, c"ackclock_cc_call_v1")?;
    // SAFETY: the functions have these types by ackclock-cc.h.
    let (info, call) = unsafe {
        let info = core::mem::transmute::<*mut c_void, InfoFunction>(info)();
        (info, core::mem::transmute::<*mut c_void, CallFunction>(call))
    };
    if info.is_null() {
        return Err("it registers no controller (its initialization fails)".to_owned());
    }
    // SAFETY: a library's description is static.
    let info = unsafe { &*info };
    let own = (ABI, KernelSock::SIZE as u32);
    if (info.abi, info.size) != own {
        return Err(format!(
            "it is built for version {} of ackclock-cc.h with {} bytes a connection, this is version {} with {}; build it anew",
            info.abi, info.size, own.0, own.1
        ));
    }
    // SAFETY: its name is a static text.
    let name = match info.name.is_null() {
        true => String::new(),
        false => unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned(),
    };
    let traits =
        KernelTraits { ops: info.ops, needs_rates: info.flags & NEEDS_RATES != 0, hz: info.hz };
    if !traits.has(KernelOp::Ssthresh) {
        return Err("it has no operation `ssthresh`".to_owned());
    }
    if !traits.has(KernelOp::CongAvoid) && !traits.has(KernelOp::CongControl) {
        return Err("it has neither `cong_avoid` nor `cong_control`".to_owned());
    }
    Ok((call, traits, name))
}
