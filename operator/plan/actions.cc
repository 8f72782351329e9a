#include "operator/plan/actions.h"

#include <fmt/format.h>

namespace etalon::controller {
namespace {

std::string_view Verb(v1::ChangeMembersRequest::Kind kind) {
  switch (kind) {
    case v1::ChangeMembersRequest::ADD_LEARNER:
      return "add learner";
    case v1::ChangeMembersRequest::PROMOTE:
      return "promote";
    case v1::ChangeMembersRequest::REMOVE:
    case v1::ChangeMembersRequest_Kind_ChangeMembersRequest_Kind_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::ChangeMembersRequest_Kind_ChangeMembersRequest_Kind_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return "remove member";
}

struct KeyOf {
  std::string operator()(const Adopt& a) const {
    return "adopt collection " + ToHex(a.collection.value());
  }
  std::string operator()(const StartStorage& a) const { return "start storage " + a.name; }
  std::string operator()(const StopStorage& a) const { return "stop storage " + a.name; }
  std::string operator()(const ReplaceDisk& a) const { return "replace disk of " + a.name; }
  std::string operator()(const StartRouter& a) const { return "start router " + a.name; }
  std::string operator()(const RestartRouter& a) const {
    return fmt::format("restart router {} with topology {}", a.name, a.version);
  }
  std::string operator()(const StopRouter& a) const { return "stop router " + a.name; }
  std::string operator()(const CreateTopology& a) const {
    return fmt::format("create topology {}", a.topology.version());
  }
  std::string operator()(const CreateSettings& a) const {
    return fmt::format("create settings {}", a.settings.version());
  }
  std::string operator()(const CreateForm& a) const {
    return "record the form of shard " + ToHex(a.form.shard());
  }
  std::string operator()(const PushTopology& a) const {
    return fmt::format("push topology {} to router {}", a.version, a.router);
  }
  std::string operator()(const ApplyTopology& a) const {
    return fmt::format("apply topology {}", a.version);
  }
  std::string operator()(const ApplySettings& a) const {
    return fmt::format("apply settings {} to shard {}", a.version, ToHex(a.shard.value()));
  }
  std::string operator()(const Form& a) const { return "form shard " + ToHex(a.shard.value()); }
  std::string operator()(const ChangeMember& a) const {
    return fmt::format("{} {} of {} in shard {}", Verb(a.kind), ToHex(a.member.value()), a.name,
                       ToHex(a.shard.value()));
  }
  std::string operator()(const TransferLeader& a) const {
    return fmt::format("hand shard {} over to {}", ToHex(a.shard.value()), a.to);
  }
  std::string operator()(const Split& a) const { return "split " + a.task; }
  std::string operator()(const AbortSplit& a) const { return "abort split " + a.task; }
  std::string operator()(const Retire& a) const { return "retire shard " + ToHex(a.shard.value()); }
  std::string operator()(const DeleteShard& a) const {
    return fmt::format("delete {} ({})", a.name, ToHex(a.shard.value()));
  }
};

}  // namespace

std::string Key(const Action& action) { return std::visit(KeyOf{}, action); }

}  // namespace etalon::controller
