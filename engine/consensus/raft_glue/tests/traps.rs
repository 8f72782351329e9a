//! What the crate does that the glue guards against. If an upgrade makes one of these fail, its guard may go.
use raft::eraftpb::*;
use raft::storage::MemStorage;
use raft::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

fn logger() -> slog::Logger {
    slog::Logger::root(slog::Discard, slog::o!())
}
fn node(voters: &[u64], learners: &[u64]) -> RawNode<MemStorage> {
    let config = Config {
        id: 1,
        election_tick: 10,
        heartbeat_tick: 2,
        check_quorum: true,
        pre_vote: true,
        max_size_per_msg: 1 << 20,
        ..Default::default()
    };
    let store = MemStorage::new_with_conf_state((voters.to_vec(), learners.to_vec()));
    RawNode::new(&config, store, &logger()).unwrap()
}
/// Takes all Readys into the store; durable at once, or never.
fn drain(n: &mut RawNode<MemStorage>, durable: bool) -> (Vec<Message>, Vec<Message>, Vec<Entry>) {
    let (mut now, mut later, mut committed) = (vec![], vec![], vec![]);
    while n.has_ready() {
        let mut rd = n.ready();
        now.extend(rd.take_messages());
        later.extend(rd.take_persisted_messages());
        committed.extend(rd.take_committed_entries());
        n.mut_store().wl().append(rd.entries()).unwrap();
        if let Some(hs) = rd.hs() {
            n.mut_store().wl().set_hardstate(hs.clone());
        }
        let number = rd.number();
        n.advance_append_async(rd);
        if durable {
            n.on_persist_ready(number);
        }
    }
    (now, later, committed)
}
fn reply(n: &mut RawNode<MemStorage>, kind: MessageType, term: u64, index: u64) -> raft::Result<()> {
    let mut m = Message { to: 1, from: 2, term, index, ..Default::default() };
    m.set_msg_type(kind);
    n.step(m)
}
fn lead(n: &mut RawNode<MemStorage>) {
    n.campaign().unwrap();
    drain(n, true);
    reply(n, MessageType::MsgRequestPreVoteResponse, 1, 0).unwrap();
    drain(n, true);
    reply(n, MessageType::MsgRequestVoteResponse, 1, 0).unwrap();
    drain(n, true);
    assert_eq!(n.raft.state, StateRole::Leader);
}
fn change(kind: ConfChangeType, id: u64) -> ConfChangeV2 {
    let mut one = ConfChangeSingle { node_id: id, ..Default::default() };
    one.set_change_type(kind);
    ConfChangeV2 { changes: vec![one], ..Default::default() }
}
fn panics(f: impl FnOnce()) -> String {
    let e = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    e.downcast_ref::<String>().cloned().or(e.downcast_ref::<&str>().map(|s| s.to_string())).unwrap()
}

#[test]
fn sole_voter_sends_before_its_vote_is_durable() {
    let mut n = node(&[1], &[2]);
    n.campaign().unwrap();
    let rd = n.ready();
    assert!(rd.must_sync() && rd.hs().unwrap().term == 1);
    assert!(rd.messages().iter().any(|m| m.get_msg_type() == MessageType::MsgAppend));
    // "may leave at once"
}
#[test]
fn sole_voter_campaigning_over_unsynced_entries_panics() {
    let mut n = node(&[1], &[]);
    let mut m = Message { to: 1, from: 2, term: 5, index: 0, log_term: 0, ..Default::default() };
    m.set_msg_type(MessageType::MsgAppend);
    m.entries = vec![Entry { index: 1, term: 5, ..Default::default() }];
    n.step(m).unwrap();
    drain(&mut n, false);
    println!("{}", panics(|| n.campaign().unwrap()));
}
#[test]
fn committed_is_not_handed_out_before_it_is_durable_here() {
    let mut n = node(&[1, 2], &[]);
    let mut m = Message { to: 1, from: 2, term: 5, index: 0, log_term: 0, commit: 1, ..Default::default() };
    m.set_msg_type(MessageType::MsgAppend);
    m.entries = vec![Entry { index: 1, term: 5, ..Default::default() }];
    n.step(m).unwrap();
    assert!(drain(&mut n, false).2.is_empty() && n.raft.raft_log.committed == 1);
    n.on_persist_ready(1);
    assert_eq!(drain(&mut n, false).2.len(), 1);
}
#[test]
fn answer_to_a_duplicate_comes_in_a_ready_without_sync() {
    let mut n = node(&[1, 2], &[]);
    let mut m = Message { to: 1, from: 2, term: 5, index: 0, log_term: 0, ..Default::default() };
    m.set_msg_type(MessageType::MsgAppend);
    m.entries = vec![Entry { index: 1, term: 5, ..Default::default() }];
    n.step(m.clone()).unwrap();
    drain(&mut n, false);
    n.step(m).unwrap();
    let rd = n.ready();
    assert!(!rd.must_sync() && rd.persisted_messages()[0].index == 1); // yet entry 1 is not durable
}
#[test]
fn leader_applying_its_own_removal_panics_at_the_next_commit() {
    let mut n = node(&[1, 2, 3], &[]);
    lead(&mut n);
    n.propose_conf_change(vec![], change(ConfChangeType::RemoveNode, 1)).unwrap();
    n.propose(vec![], b"next".to_vec()).unwrap();
    drain(&mut n, true);
    let last = n.raft.raft_log.last_index();
    reply(&mut n, MessageType::MsgAppendResponse, 1, last - 1).unwrap();
    assert_eq!(n.raft.raft_log.committed, last - 1);
    drain(&mut n, true);
    n.apply_conf_change(&change(ConfChangeType::RemoveNode, 1)).unwrap();
    assert_eq!(n.raft.state, StateRole::Leader);
    let mut m = Message { to: 1, from: 3, term: 1, index: last, ..Default::default() };
    m.set_msg_type(MessageType::MsgAppendResponse);
    n.step(m).unwrap();
    println!("{}", panics(|| reply(&mut n, MessageType::MsgAppendResponse, 1, last).unwrap()));
}
#[test]
fn leader_applying_its_own_removal_panics_at_its_next_sync() {
    let mut n = node(&[1, 2, 3], &[]);
    lead(&mut n);
    n.propose_conf_change(vec![], change(ConfChangeType::RemoveNode, 1)).unwrap();
    drain(&mut n, true);
    n.propose(vec![], b"next".to_vec()).unwrap();
    drain(&mut n, false);
    let last = n.raft.raft_log.last_index();
    reply(&mut n, MessageType::MsgAppendResponse, 1, last - 1).unwrap();
    drain(&mut n, false);
    n.apply_conf_change(&change(ConfChangeType::RemoveNode, 1)).unwrap();
    println!("{}", panics(|| n.on_persist_ready(u64::MAX)));
}
#[test]
fn second_change_is_replaced_by_an_empty_entry_and_accepted() {
    let mut n = node(&[1, 2], &[]);
    lead(&mut n);
    // Even the first one: pending until the first entry of the term is committed *and applied*.
    n.propose_conf_change(vec![], change(ConfChangeType::AddNode, 3)).unwrap();
    n.propose_conf_change(vec![], change(ConfChangeType::AddNode, 4)).unwrap();
    let kinds: Vec<i32> = n.raft.raft_log.unstable_entries().iter().map(|e| e.entry_type).collect();
    println!("{:?} applied {} pending {}", kinds, n.raft.raft_log.applied, n.raft.pending_conf_index);
    assert_eq!(*kinds.last().unwrap(), EntryType::EntryNormal as i32);
}
#[test]
fn applied_past_the_hard_states_commit_panics_at_start() {
    let store = MemStorage::new_with_conf_state((vec![1], vec![]));
    let es: Vec<Entry> = (1..9).map(|i| Entry { index: i, term: 1, ..Default::default() }).collect();
    store.wl().append(&es).unwrap();
    store.wl().set_hardstate(HardState { term: 1, vote: 1, commit: 4 });
    let config = Config { id: 1, applied: 6, ..Default::default() };
    println!("{}", panics(|| drop(RawNode::new(&config, store, &logger()))));
}
#[test]
fn commit_past_the_log_panics_at_start() {
    let store = MemStorage::new_with_conf_state((vec![1], vec![]));
    store.wl().set_hardstate(HardState { term: 1, vote: 1, commit: 4 });
    let config = Config { id: 1, ..Default::default() };
    println!("{}", panics(|| drop(RawNode::new(&config, store, &logger()))));
}
#[test]
fn compaction_past_what_was_handed_out_skips_entries_in_silence() {
    let store = MemStorage::new_with_conf_state((vec![1], vec![]));
    let es: Vec<Entry> = (1..9).map(|i| Entry { index: i, term: 1, ..Default::default() }).collect();
    store.wl().append(&es).unwrap();
    store.wl().set_hardstate(HardState { term: 1, vote: 1, commit: 8 });
    let config = Config { id: 1, applied: 2, ..Default::default() };
    let mut n = RawNode::new(&config, store, &logger()).unwrap();
    n.mut_store().wl().compact(6).unwrap();
    assert_eq!(drain(&mut n, true).2[0].index, 6); // 3, 4, 5 are gone
}
#[test]
fn read_context_in_use_is_dropped_in_silence() {
    let mut n = node(&[1, 2, 3], &[]);
    lead(&mut n);
    reply(&mut n, MessageType::MsgAppendResponse, 1, 1).unwrap();
    drain(&mut n, true);
    n.read_index(vec![7]);
    let mut m = Message { to: 1, from: 3, ..Default::default() };
    m.set_msg_type(MessageType::MsgReadIndex);
    m.entries = vec![Entry { data: vec![7], ..Default::default() }];
    n.step(m).unwrap();
    assert_eq!(n.raft.pending_read_count(), 1);
}
#[test]
fn batch_append_ignores_the_message_size() {
    let mut n = node(&[1, 2], &[]);
    lead(&mut n);
    reply(&mut n, MessageType::MsgAppendResponse, 1, 1).unwrap();
    drain(&mut n, true);
    n.set_batch_append(true);
    for _ in 0..8 {
        n.propose(vec![], vec![0; 1 << 20]).unwrap();
    }
    let most = drain(&mut n, true).0.iter().map(|m| m.entries.len()).max();
    assert_eq!(most, Some(8)); // one message of 8 MiB, max_size_per_msg is 1 MiB
}
#[test]
fn snapshot_state_stays_until_someone_reports() {
    let mut n = node(&[1, 2], &[]);
    lead(&mut n);
    n.raft.mut_prs().get_mut(2).unwrap().become_snapshot(2);
    for _ in 0..100 {
        n.tick();
        reply(&mut n, MessageType::MsgHeartbeatResponse, 1, 0).unwrap();
        assert!(drain(&mut n, true).0.iter().all(|m| m.get_msg_type() == MessageType::MsgHeartbeat));
    }
    n.report_snapshot(2, SnapshotStatus::Failure);
    reply(&mut n, MessageType::MsgHeartbeatResponse, 1, 0).unwrap();
    assert!(drain(&mut n, true).0.iter().any(|m| m.get_msg_type() != MessageType::MsgHeartbeat));
}
#[test]
fn applied_before_a_snapshot_is_durable_panics() {
    let mut n = node(&[1, 2], &[]);
    let cs = ConfState { voters: vec![1, 2], ..Default::default() };
    let snapshot =
        Snapshot { data: vec![], metadata: Some(SnapshotMetadata { conf_state: Some(cs), index: 50, term: 3 }) };
    let mut m = Message { to: 1, from: 2, term: 5, snapshot: Some(snapshot.clone()), ..Default::default() };
    m.set_msg_type(MessageType::MsgSnapshot);
    n.step(m).unwrap();
    let rd = n.ready();
    n.mut_store().wl().apply_snapshot(snapshot).unwrap();
    n.advance_append_async(rd);
    println!("{}", panics(|| n.advance_apply_to(50)));
}
#[test]
fn heartbeat_past_a_lost_log_panics() {
    let mut n = node(&[1, 2], &[]);
    let mut m = Message { to: 1, from: 2, term: 5, commit: 9, ..Default::default() };
    m.set_msg_type(MessageType::MsgHeartbeat);
    println!("{}", panics(|| n.step(m).unwrap()));
}
#[test]
fn transfer_blocks_proposals_for_one_election_timeout() {
    let mut n = node(&[1, 2], &[]);
    lead(&mut n);
    n.transfer_leader(2);
    let mut ticks = 0;
    while n.propose(vec![], vec![1]).is_err() {
        reply(&mut n, MessageType::MsgHeartbeatResponse, 1, 0).unwrap();
        n.tick();
        ticks += 1;
    }
    assert_eq!(ticks, 10);
}
#[test]
fn restarted_voter_votes_at_once() {
    let mut n = node(&[1, 2, 3], &[]);
    let mut m = Message { to: 1, from: 2, term: 5, index: 0, log_term: 0, ..Default::default() };
    m.set_msg_type(MessageType::MsgRequestVote);
    n.step(m).unwrap();
    assert!(drain(&mut n, true).1.iter().any(|m| m.get_msg_type() == MessageType::MsgRequestVoteResponse && !m.reject));
}
/// Node 1 hears the leader 2 of term 5, and answers.
fn follow(n: &mut RawNode<MemStorage>) {
    let mut m = Message { to: 1, from: 2, term: 5, ..Default::default() };
    m.set_msg_type(MessageType::MsgHeartbeat);
    n.step(m).unwrap();
    assert!(drain(n, true).1.iter().any(|m| m.get_msg_type() == MessageType::MsgHeartbeatResponse));
}
fn votes(n: &mut RawNode<MemStorage>, term: u64, context: &[u8]) -> bool {
    let mut m = Message { to: 1, from: 3, term, context: context.to_vec(), ..Default::default() };
    m.set_msg_type(MessageType::MsgRequestVote);
    n.step(m).unwrap();
    drain(n, true).1.iter().any(|m| m.get_msg_type() == MessageType::MsgRequestVoteResponse && !m.reject)
}
#[test]
fn stray_reply_of_a_higher_term_ends_the_silence() {
    // The refusal of a vote that this replica asked for before, or the answer to an append from when it led.
    for kind in [MessageType::MsgRequestPreVoteResponse, MessageType::MsgAppendResponse] {
        let mut n = node(&[1, 2, 3], &[]);
        follow(&mut n);
        assert!(!votes(&mut n, 6, b""));
        let mut m = Message { to: 1, from: 3, term: 6, reject: true, ..Default::default() };
        m.set_msg_type(kind);
        n.step(m).unwrap();
        assert!(votes(&mut n, 6, b"")); // no tick has passed since the heartbeat
    }
}
#[test]
fn forced_campaign_ends_the_silence() {
    let mut n = node(&[1, 2, 3], &[]);
    follow(&mut n);
    assert!(votes(&mut n, 6, CAMPAIGN_TRANSFER));
}
