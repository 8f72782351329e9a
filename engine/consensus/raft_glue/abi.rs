//! The structures that cross the border. Keep in step with consensus.cc (raft_abi() catches a difference in size).

use std::ffi::c_void;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct View<T> {
    pub data: *const T,
    pub size: usize,
}
impl<T> Default for View<T> {
    fn default() -> Self {
        View { data: std::ptr::null(), size: 0 }
    }
}
impl<T> View<T> {
    pub fn of(s: &[T]) -> Self {
        View { data: s.as_ptr(), size: s.len() }
    }
    pub fn slice(&self) -> &[T] {
        if self.size == 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(self.data, self.size) }
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CEntry {
    pub index: u64,
    pub term: u64,
    pub kind: u32,
    pub data: View<u8>,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CMessage {
    pub to: u64,
    pub kind: u32,
    pub bytes: View<u8>,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CRead {
    pub tag: u64,
    pub index: u64,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CHard {
    pub term: u64,
    pub vote: u64,
    pub commit: u64,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CMembers {
    pub voters: View<u64>,
    pub learners: View<u64>,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CSnapshot {
    pub index: u64,
    pub term: u64,
    pub from: u64,
    pub members: CMembers,
    pub name: View<u8>,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CStatus {
    pub role: u32,
    pub leader: u64,
    pub term: u64,
    pub commit: u64,
    pub transferee: u64,
    pub members_pending: u32,
}
/// What a leader knows of a member. state: 0 probing, 1 replicating, 2 waiting for a snapshot.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CProgress {
    pub matched: u64,
    pub state: u32,
}
/// What `raft_take` hands out: first what must reach the log, then the rest.
#[repr(C)]
#[derive(Default)]
pub struct COutput {
    pub number: u64,
    pub must_sync: u32,
    pub has_hard: u32,
    pub has_snapshot: u32,
    pub hard: CHard,
    pub snapshot: CSnapshot,
    pub entries: View<CEntry>,
    pub messages: View<CMessage>,
    pub committed: View<CEntry>,
    pub reads: View<CRead>,
}
#[repr(C)]
pub struct COptions {
    pub id: u64,
    pub applied: u64,
    pub election_ticks: u64,
    pub heartbeat_ticks: u64,
    pub max_message_bytes: u64,
    pub max_inflight: u64,
    pub max_committed_bytes: u64,
    pub max_uncommitted_bytes: u64,
    pub vote_holdoff_ticks: u64,
    pub life: u64,
    pub hard: CHard,
    pub members: CMembers,
}
/// How the log is asked. Results: 0 ok, 1 compacted, 2 not there, 3 not now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Callbacks {
    pub ctx: *mut c_void,
    pub first: extern "C" fn(*mut c_void) -> u64,
    pub last: extern "C" fn(*mut c_void) -> u64,
    pub term: extern "C" fn(*mut c_void, u64, *mut u64) -> i32,
    pub entries: extern "C" fn(*mut c_void, low: u64, high: u64, max: u64, flags: u32, sink: *mut c_void) -> i32,
    pub snapshot: extern "C" fn(*mut c_void, to: u64, at_least: u64, out: *mut CSnapshot) -> i32,
    pub warn: extern "C" fn(*mut c_void, text: View<u8>),
}
unsafe impl Send for Callbacks {}
unsafe impl Sync for Callbacks {}
impl std::panic::UnwindSafe for Callbacks {}
impl std::panic::RefUnwindSafe for Callbacks {}
