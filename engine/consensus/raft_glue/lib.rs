//! The C border of the `raft` crate. One thread owns a node. What a call hands out stays valid until the next call on
//! the same node. Every rule of the crate about the order of calls is kept here; nothing here does I/O.
//! A panic aborts the process (profile `panic = "abort"`): the crate panics only on broken invariants.

mod abi;

use abi::*;
use prost::Message as _;
use raft::eraftpb::{
    ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState, Entry, EntryType, HardState, Message, MessageType,
    Snapshot, SnapshotMetadata,
};
use raft::{
    Config, Error, GetEntriesContext, ProgressState, RaftState, RawNode, Ready, SnapshotStatus, StateRole, Storage,
    StorageError, CAMPAIGN_TRANSFER,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;

const MAY_WAIT: u32 = 1; // the log may answer 3 and call raft_fetched later
const BARE: u32 = 2; // only index, term and kind are looked at: leave the data out

struct Log {
    c: Callbacks,
    start: RaftState,
    waiting: RefCell<Vec<GetEntriesContext>>,
}

fn check(code: i32) -> raft::Result<()> {
    Err(Error::Store(match code {
        0 => return Ok(()),
        1 => StorageError::Compacted,
        3 => StorageError::LogTemporarilyUnavailable,
        _ => StorageError::Unavailable,
    }))
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.start.clone())
    }
    fn entries(
        &self,
        low: u64,
        high: u64,
        max: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let max: Option<u64> = max.into();
        let wait = context.can_async();
        // Without a limit and not for sending: a campaign looks for membership changes in everything not yet applied.
        let flags = if wait {
            MAY_WAIT
        } else if max.is_none() {
            BARE
        } else {
            0
        };
        let mut sink: Vec<Entry> = Vec::new();
        let code =
            (self.c.entries)(self.c.ctx, low, high, max.unwrap_or(u64::MAX), flags, &mut sink as *mut _ as *mut c_void);
        if code == 3 {
            self.waiting.borrow_mut().push(context);
        }
        check(code).map(|_| sink)
    }
    fn term(&self, index: u64) -> raft::Result<u64> {
        let mut term = 0;
        check((self.c.term)(self.c.ctx, index, &mut term)).map(|_| term)
    }
    fn first_index(&self) -> raft::Result<u64> {
        Ok((self.c.first)(self.c.ctx))
    }
    fn last_index(&self) -> raft::Result<u64> {
        Ok((self.c.last)(self.c.ctx))
    }
    fn snapshot(&self, at_least: u64, to: u64) -> raft::Result<Snapshot> {
        let mut out = CSnapshot::default();
        let code = (self.c.snapshot)(self.c.ctx, to, at_least, &mut out);
        let fits = out.members.voters.slice().contains(&to) || out.members.learners.slice().contains(&to);
        // One that does not name the receiver would be ignored by it, and the crate would wait for ever.
        if code != 0 || !fits || out.index < at_least {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let metadata =
            SnapshotMetadata { conf_state: Some(conf_state(&out.members)), index: out.index, term: out.term };
        Ok(Snapshot { data: out.name.slice().to_vec(), metadata: Some(metadata) })
    }
}

fn conf_state(m: &CMembers) -> ConfState {
    ConfState { voters: m.voters.slice().to_vec(), learners: m.learners.slice().to_vec(), ..Default::default() }
}
fn c_members(cs: &ConfState) -> CMembers {
    CMembers { voters: View::of(&cs.voters), learners: View::of(&cs.learners) }
}
fn c_entry(e: &Entry) -> CEntry {
    CEntry { index: e.index, term: e.term, kind: e.entry_type as u32, data: View::of(&e.data) }
}
fn c_snapshot(s: &Snapshot, from: u64) -> CSnapshot {
    let m = s.get_metadata();
    CSnapshot { index: m.index, term: m.term, from, members: c_members(m.get_conf_state()), name: View::of(&s.data) }
}

/// The crate tells requests apart by their context alone, those of other replicas and of earlier lives included.
fn read_context(id: u64, life: u64, tag: u64) -> Vec<u8> {
    [id, life, tag].iter().flat_map(|v| v.to_le_bytes()).collect()
}

struct Warn(Callbacks);
impl slog::Drain for Warn {
    type Ok = ();
    type Err = slog::Never;
    fn log(&self, record: &slog::Record, _: &slog::OwnedKVList) -> Result<(), slog::Never> {
        (self.0.warn)(self.0.ctx, View::of(record.msg().to_string().as_bytes()));
        Ok(())
    }
}

struct Sent {
    to: u64,
    kind: u32,
    bytes: Vec<u8>,
}
struct Held {
    number: u64,
    needs_sync: bool,
    messages: Vec<Sent>,
}

pub struct Node {
    raw: RawNode<Log>,
    id: u64,
    life: u64,
    ticks: u64,
    election_ticks: u64,
    vote_from: u64,       // no vote is given before that tick, see `withholds_vote`
    holdoff: bool,        // vote_from stems from the start, not from a leader heard since
    sole: bool,           // no other member is or may become a voter by the log, applied or not
    ready: Option<Ready>, // between raft_take and raft_advance
    needs_sync: bool,
    held: VecDeque<Held>, // Readys the disk has not confirmed, with the messages that wait for it
    released: Vec<Sent>,
    durable: u64,
    term_vote: (u64, u64),
    term_ready: u64, // the last Ready that changed term or vote
    sent: Vec<Sent>, // what the views below point into
    members: ConfState,
    context: Vec<u8>,
    offered: Option<Snapshot>,
    v_messages: Vec<CMessage>,
    v_entries: Vec<CEntry>,
    v_committed: Vec<CEntry>,
    v_reads: Vec<CRead>,
    committed: Vec<Entry>,
}

impl Node {
    fn is_leader(&self) -> bool {
        self.raw.raft.state == StateRole::Leader
    }
    /// A sole voter wins at once, and the crate asserts that all it has is on disk then.
    fn must_not_campaign(&self) -> bool {
        !self.is_leader() && !self.held.is_empty() && self.raw.raft.prs().is_singleton()
    }
    /// Leases of leaders rest on the silence of those that answered them. The crate keeps that silence only while it
    /// knows the leader: a stray reply of a higher term, or a restart, makes it forget. A forced campaign follows from
    /// a hand-over, whose leader has given up its lease. A restarted sole voter cannot have answered anybody.
    fn withholds_vote(&self, m: &Message) -> bool {
        let exempt = self.holdoff && self.sole;
        self.ticks < self.vote_from && !exempt && m.context[..] != *CAMPAIGN_TRANSFER
    }
    fn note_voters(&mut self, ids: impl IntoIterator<Item = u64>) {
        let id = self.id;
        self.sole &= ids.into_iter().all(|v| v == id);
    }
    fn note_entry(&mut self, e: &Entry) {
        if e.entry_type == EntryType::EntryConfChangeV2 as i32 {
            if let Ok(cc) = ConfChangeV2::decode(&e.data[..]) {
                let added = cc.changes.iter().filter(|c| c.change_type == ConfChangeType::AddNode as i32);
                self.note_voters(added.map(|c| c.node_id));
            }
        }
    }
    /// The changes of members in the log after the applied index: kinds first, then the few whole entries.
    fn note_log(&mut self, c: &Callbacks, applied: u64, last: u64) -> bool {
        let first = applied.max((c.first)(c.ctx) - 1) + 1;
        if first > last {
            return true;
        }
        let read = |low, high, flags| {
            let mut found: Vec<Entry> = Vec::new();
            let code = (c.entries)(c.ctx, low, high, u64::MAX, flags, &mut found as *mut _ as *mut c_void);
            (code == 0).then_some(found)
        };
        let Some(kinds) = read(first, last + 1, BARE) else { return false };
        for e in kinds.iter().filter(|e| e.entry_type == EntryType::EntryConfChangeV2 as i32) {
            let Some(whole) = read(e.index, e.index + 1, 0) else { return false };
            whole.iter().for_each(|w| self.note_entry(w));
        }
        true
    }
    fn release(&mut self, number: u64) {
        self.raw.on_persist_ready(number);
        self.durable = self.durable.max(number);
        while self.held.front().map_or(false, |h| h.number <= number || !h.needs_sync) {
            let h = self.held.pop_front().unwrap();
            if h.number > number {
                self.raw.on_persist_ready(h.number);
                self.durable = h.number;
            }
            self.released.extend(h.messages);
        }
    }
}

#[no_mangle]
pub extern "C" fn raft_open(o: &COptions, c: &Callbacks) -> *mut Node {
    let last = (c.last)(c.ctx);
    // The commit index is volatile in Raft: the log may have lost its tail, the state machine may know more.
    let mut hard = HardState { term: o.hard.term, vote: o.hard.vote, commit: o.hard.commit.max(o.applied).min(last) };
    if hard.commit < (c.first)(c.ctx) - 1 {
        hard.commit = (c.first)(c.ctx) - 1;
    }
    let config = Config {
        id: o.id,
        applied: o.applied,
        election_tick: o.election_ticks as usize,
        heartbeat_tick: o.heartbeat_ticks as usize,
        min_election_tick: o.election_ticks as usize,
        max_election_tick: o.election_ticks as usize + 1, // one value: the crate draws from thread_rng()
        max_size_per_msg: o.max_message_bytes,
        max_inflight_msgs: o.max_inflight as usize,
        max_committed_size_per_ready: o.max_committed_bytes,
        max_uncommitted_size: o.max_uncommitted_bytes,
        check_quorum: true,
        pre_vote: true,
        ..Default::default()
    };
    // A replica made by a bootstrap (term 1, nothing in its log), or blank, has never promised anything.
    let restarted = hard.term > 1 || hard.vote != 0 || last >= (c.first)(c.ctx);
    let term_vote = (hard.term, hard.vote);
    let log = Log {
        c: *c,
        start: RaftState { hard_state: hard, conf_state: conf_state(&o.members) },
        waiting: Default::default(),
    };
    let logger = slog::Logger::root(slog::Fuse(Warn(*c)), slog::o!());
    let warn = |text: &str| (c.warn)(c.ctx, View::of(text.as_bytes()));
    let raw = match RawNode::new(&config, log, &logger) {
        Ok(raw) => raw,
        Err(e) => {
            warn(&e.to_string());
            return std::ptr::null_mut();
        }
    };
    let mut n = Box::new(Node {
        raw,
        id: o.id,
        life: o.life,
        ticks: 0,
        election_ticks: o.election_ticks,
        vote_from: if restarted { o.vote_holdoff_ticks } else { 0 },
        holdoff: true,
        sole: o.members.voters.slice().contains(&o.id),
        ready: None,
        needs_sync: false,
        held: VecDeque::new(),
        released: vec![],
        durable: 0,
        term_vote,
        term_ready: 0,
        sent: vec![],
        members: ConfState::default(),
        context: vec![],
        offered: None,
        v_messages: vec![],
        v_entries: vec![],
        v_committed: vec![],
        v_reads: vec![],
        committed: vec![],
    });
    n.note_voters(o.members.voters.slice().iter().copied());
    if !n.note_log(c, o.applied, last) {
        warn("the changes of members in the log cannot be read");
        return std::ptr::null_mut();
    }
    Box::into_raw(n)
}
#[no_mangle]
pub extern "C" fn raft_close(n: *mut Node) {
    drop(unsafe { Box::from_raw(n) });
}
/// The log's `entries` callback adds what it found.
#[no_mangle]
pub extern "C" fn raft_sink_add(sink: *mut c_void, e: &CEntry) {
    let mut entry = Entry { index: e.index, term: e.term, data: e.data.slice().to_vec(), ..Default::default() };
    entry.entry_type = e.kind as i32;
    unsafe { &mut *(sink as *mut Vec<Entry>) }.push(entry);
}
#[no_mangle]
pub extern "C" fn raft_status(n: &Node, out: &mut CStatus) {
    let r = &n.raw.raft;
    let role = match r.state {
        StateRole::Follower => 0,
        StateRole::PreCandidate | StateRole::Candidate => 1,
        StateRole::Leader => 2,
    };
    *out = CStatus {
        role,
        leader: r.leader_id,
        term: r.term,
        commit: r.raft_log.committed,
        transferee: r.lead_transferee.unwrap_or(0),
        members_pending: r.has_pending_conf() as u32,
    };
}
#[no_mangle]
pub extern "C" fn raft_tick(n: &mut Node) {
    n.ticks += 1;
    if !n.must_not_campaign() {
        n.raw.tick();
    }
}
#[no_mangle]
pub extern "C" fn raft_campaign(n: &mut Node) {
    // To vote for oneself is a vote too.
    if !n.must_not_campaign() && !n.withholds_vote(&Message::default()) {
        let _ = n.raw.campaign();
    }
}
/// The leader steps down by itself, in its term.
#[no_mangle]
pub extern "C" fn raft_resign(n: &mut Node) {
    if n.is_leader() {
        let term = n.raw.raft.term;
        n.raw.raft.become_follower(term, 0);
    }
}
/// The leader begins a new term, past the silence of the voters, as the receiver of a hand-over does: for one that has
/// given up its lease. Not while a hand-over is under way.
#[no_mangle]
pub extern "C" fn raft_reelect(n: &mut Node) {
    if !n.is_leader() || n.raw.raft.lead_transferee.is_some() {
        return;
    }
    raft_resign(n);
    if n.must_not_campaign() {
        return;
    }
    let mut m = Message { to: n.id, from: n.id, term: n.raw.raft.term, ..Default::default() };
    m.set_msg_type(MessageType::MsgTimeoutNow);
    let _ = n.raw.step(m);
}
/// 0 accepted, 1 not the leader, 2 leadership is being transferred, 3 too much uncommitted.
#[no_mangle]
pub extern "C" fn raft_propose(n: &mut Node, data: View<u8>, index: &mut u64, term: &mut u64) -> i32 {
    if !n.is_leader() {
        return 1;
    }
    if n.raw.raft.lead_transferee.is_some() {
        return 2;
    }
    if n.raw.propose(Vec::new(), data.slice().to_vec()).is_err() {
        return 3;
    }
    *index = n.raw.raft.raft_log.last_index();
    *term = n.raw.raft.term;
    0
}
/// kind: 0 voter, 1 remove, 2 learner. 0 accepted, 1 not the leader, 2 transfer, 3 another change is pending, 4 the leader itself.
#[no_mangle]
pub extern "C" fn raft_change(n: &mut Node, kind: i32, member: u64, context: View<u8>, index: &mut u64) -> i32 {
    if !n.is_leader() {
        return 1;
    }
    if n.raw.raft.lead_transferee.is_some() {
        return 2;
    }
    if n.raw.raft.has_pending_conf() {
        return 3;
    } // the crate would put an empty entry in its place and say Ok
    if kind != 0 && member == n.id {
        return 4;
    }
    let mut one = ConfChangeSingle { node_id: member, ..Default::default() };
    one.set_change_type(match kind {
        0 => ConfChangeType::AddNode,
        1 => ConfChangeType::RemoveNode,
        _ => ConfChangeType::AddLearnerNode,
    });
    let cc = ConfChangeV2 { changes: vec![one], context: context.slice().to_vec(), ..Default::default() };
    if n.raw.propose_conf_change(Vec::new(), cc).is_err() {
        return 3;
    }
    *index = n.raw.raft.raft_log.last_index();
    0
}
/// To be called for each committed entry of the membership kind, when it is applied.
#[no_mangle]
pub extern "C" fn raft_apply_change(n: &mut Node, data: View<u8>, out: &mut CMembers, context: &mut View<u8>) -> i32 {
    let Ok(cc) = ConfChangeV2::decode(data.slice()) else { return 1 };
    let Ok(cs) = n.raw.apply_conf_change(&cc) else { return 1 };
    n.members = cs;
    n.context = cc.context;
    *out = c_members(&n.members);
    *context = View::of(&n.context);
    // A leader that is no voter any more would go on, and unwrap its own missing progress at the next commit.
    if !n.members.voters.contains(&n.id) {
        raft_resign(n);
    }
    0
}
/// 0 done, 1 dropped, 2 garbage, 3 a snapshot is offered: fetch its data, then raft_install(the same bytes).
#[no_mangle]
pub extern "C" fn raft_step(n: &mut Node, bytes: View<u8>, offer: &mut CSnapshot) -> i32 {
    let Ok(m) = Message::decode(bytes.slice()) else { return 2 };
    match m.msg_type() {
        _ if m.to != n.id => return 1,
        MessageType::MsgPropose | MessageType::MsgTransferLeader => return 1, // never forwarded here
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote if n.withholds_vote(&m) => return 1,
        MessageType::MsgTimeoutNow if n.must_not_campaign() => return 1,
        MessageType::MsgSnapshot => {
            let r = &n.raw.raft;
            let meta = m.get_snapshot().get_metadata();
            let known = r.pending_request_snapshot == 0 && r.raft_log.match_term(meta.index, meta.term);
            if m.term >= r.term && meta.index > r.raft_log.committed && !known {
                let from = m.from;
                n.offered = m.snapshot;
                *offer = c_snapshot(n.offered.as_ref().unwrap(), from);
                return 3;
            }
        }
        _ => {}
    }
    let (from, kind) = (m.from, m.msg_type());
    let failed = n.raw.step(m).is_err();
    let r = &n.raw.raft;
    let led = matches!(kind, MessageType::MsgHeartbeat | MessageType::MsgAppend | MessageType::MsgSnapshot);
    if led && r.leader_id == from && from != n.id {
        (n.vote_from, n.holdoff) = (n.ticks + n.election_ticks, false);
    }
    failed as i32
}
/// The data of an offer is complete. 1: nobody leads now, ask again later.
#[no_mangle]
pub extern "C" fn raft_install(n: &mut Node, bytes: View<u8>) -> i32 {
    let Ok(mut m) = Message::decode(bytes.slice()) else { return 2 };
    let r = &n.raw.raft;
    if m.term < r.term {
        // What is committed stays so whoever leads: let it answer to the leader of today.
        if r.leader_id == 0 {
            return 1;
        }
        m.term = r.term;
        m.from = r.leader_id;
    }
    n.raw.step(m).is_err() as i32
}
/// One Ready. The caller puts entries, snapshot and hard state into its log, readable at once, then calls raft_advance.
#[no_mangle]
pub extern "C" fn raft_take(n: &mut Node, out: &mut COutput) -> i32 {
    assert!(n.ready.is_none(), "raft_take without raft_advance");
    *out = COutput::default();
    n.sent = std::mem::take(&mut n.released);
    if n.raw.has_ready() {
        let mut rd = n.raw.ready();
        let number = rd.number();
        n.needs_sync = rd.must_sync();
        let r = &n.raw.raft;
        if (r.term, r.vote) != n.term_vote {
            n.term_vote = (r.term, r.vote);
            n.term_ready = number;
        }
        let persisted = rd.take_persisted_messages();
        let mut messages = rd.take_messages();
        // A sole voter leads in the Ready that also carries its vote: its messages to learners must wait for it.
        let at_once = persisted.is_empty() && n.term_ready <= n.durable;
        messages.extend(persisted);
        let sent = messages.iter().map(|m| Sent { to: m.to, kind: m.msg_type as u32, bytes: m.encode_to_vec() });
        let mut waiting = vec![];
        if at_once || (!n.needs_sync && n.held.is_empty()) {
            n.sent.extend(sent)
        } else {
            waiting.extend(sent)
        }
        if n.needs_sync || !n.held.is_empty() {
            n.held.push_back(Held { number, needs_sync: n.needs_sync, messages: waiting });
        }
        rd.entries().iter().for_each(|e| n.note_entry(e));
        n.note_voters(rd.snapshot().get_metadata().get_conf_state().voters.iter().copied());
        n.v_entries = rd.entries().iter().map(c_entry).collect();
        n.committed = rd.take_committed_entries();
        n.v_committed = n.committed.iter().map(c_entry).collect();
        n.v_reads.clear();
        for s in rd.read_states() {
            // An answer to a question of an earlier life may still arrive.
            if s.request_ctx.len() == 24 && s.request_ctx[..16] == *read_context(n.id, n.life, 0).split_at(16).0 {
                n.v_reads
                    .push(CRead { tag: u64::from_le_bytes(s.request_ctx[16..].try_into().unwrap()), index: s.index });
            }
        }
        out.number = number;
        out.must_sync = n.needs_sync as u32;
        if let Some(h) = rd.hs() {
            out.has_hard = 1;
            out.hard = CHard { term: h.term, vote: h.vote, commit: h.commit };
        }
        n.ready = Some(rd);
        let rd = n.ready.as_ref().unwrap();
        if !rd.snapshot().is_empty() {
            out.has_snapshot = 1;
            out.snapshot = c_snapshot(rd.snapshot(), 0);
        }
        out.entries = View::of(&n.v_entries);
        out.committed = View::of(&n.v_committed);
        out.reads = View::of(&n.v_reads);
    } else if n.sent.is_empty() {
        return 0;
    }
    n.v_messages = n.sent.iter().map(|s| CMessage { to: s.to, kind: s.kind, bytes: View::of(&s.bytes) }).collect();
    out.messages = View::of(&n.v_messages);
    1
}
#[no_mangle]
pub extern "C" fn raft_advance(n: &mut Node) {
    let Some(rd) = n.ready.take() else { return };
    let number = rd.number();
    n.raw.advance_append_async(rd);
    if n.held.is_empty() {
        n.release(number); // nothing to wait for
    }
}
#[no_mangle]
pub extern "C" fn raft_durable(n: &mut Node, number: u64) {
    n.release(number);
}
#[no_mangle]
pub extern "C" fn raft_applied(n: &mut Node, index: u64) {
    n.raw.advance_apply_to(index);
}
/// Entries the log answered "not now" for can be read now.
#[no_mangle]
pub extern "C" fn raft_fetched(n: &mut Node) {
    let contexts = std::mem::take(&mut *n.raw.mut_store().waiting.borrow_mut());
    for c in contexts {
        n.raw.on_entries_fetched(c);
    }
}
#[no_mangle]
pub extern "C" fn raft_transfer(n: &mut Node, to: u64) -> i32 {
    if !n.is_leader() {
        return 1;
    }
    n.raw.transfer_leader(to);
    (n.raw.raft.lead_transferee != Some(to)) as i32
}
#[no_mangle]
pub extern "C" fn raft_read(n: &mut Node, tag: u64) -> i32 {
    let r = &n.raw.raft;
    if r.leader_id == 0 || (n.is_leader() && !r.commit_to_current_term()) {
        return 1;
    } // the crate would drop it in silence
    n.raw.read_index(read_context(n.id, n.life, tag));
    0
}
/// 0 found, 1 not the leader or no such member.
#[no_mangle]
pub extern "C" fn raft_progress(n: &Node, member: u64, out: &mut CProgress) -> i32 {
    let Some(p) = n.raw.raft.prs().get(member).filter(|_| n.is_leader()) else { return 1 };
    let state = match p.state {
        ProgressState::Probe => 0,
        ProgressState::Replicate => 1,
        ProgressState::Snapshot => 2,
    };
    *out = CProgress { matched: p.matched, state };
    0
}
/// what: 0 unreachable, 1 snapshot arrived, 2 snapshot failed.
#[no_mangle]
pub extern "C" fn raft_report(n: &mut Node, member: u64, what: i32) {
    match what {
        0 => n.raw.report_unreachable(member),
        1 => n.raw.report_snapshot(member, SnapshotStatus::Finish),
        _ => n.raw.report_snapshot(member, SnapshotStatus::Failure),
    }
}
#[no_mangle]
pub extern "C" fn raft_request_snapshot(n: &mut Node) -> i32 {
    n.raw.request_snapshot().is_err() as i32
}
#[no_mangle]
pub extern "C" fn raft_abi() -> usize {
    std::mem::size_of::<COutput>() * 1000 + std::mem::size_of::<COptions>() + EntryType::EntryConfChangeV2 as usize
}
