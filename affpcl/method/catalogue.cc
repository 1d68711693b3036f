// The one list of methods. A new one is a line here.
#include <fmt/format.h>

#include "affpcl/base/error.h"
#include "affpcl/method/affpcl.h"
#include "affpcl/method/all_for_all.h"
#include "affpcl/method/all_for_one.h"
#include "affpcl/method/apfl.h"
#include "affpcl/method/ditto.h"
#include "affpcl/method/fedavg.h"
#include "affpcl/method/fedem.h"
#include "affpcl/method/fedprox.h"
#include "affpcl/method/fedrep.h"
#include "affpcl/method/fine_tune.h"
#include "affpcl/method/ifca.h"
#include "affpcl/method/independent.h"
#include "affpcl/method/l2gd.h"
#include "affpcl/method/method.h"
#include "affpcl/method/per_fedavg.h"
#include "affpcl/method/pfedme.h"
#include "affpcl/method/residual.h"
#include "affpcl/method/scaffold.h"
#include "affpcl/method/wga.h"

namespace affpcl {
namespace {

std::vector<MethodKind>& registry() {
  static std::vector<MethodKind> kKinds = {
      AffPcl::kind(),    Independent::kind(), FedAvg::kind(),    FineTune::kind(), PFedMe::kind(),
      Ditto::kind(),     Ifca::kind(),        Scaffold::kind(),  Residual::kind(), FedProx::kind(),
      Apfl::kind(),      L2gd::kind(),        PerFedAvg::kind(), FedRep::kind(),   FedEm::kind(),
      AllForOne::kind(), AllForAll::kind(),   Wga::kind(),
  };
  return kKinds;
}

}  // namespace

const std::vector<MethodKind>& method_kinds() { return registry(); }

const MethodKind& method_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const MethodKind& kind : registry()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw BadInput(fmt::format("method.kind = \"{}\" is not known{}", name, hint(name, names)));
}

void add_method_kind(MethodKind kind) {
  for (MethodKind& known : registry())
    if (known.name == kind.name) {
      known = std::move(kind);
      return;
    }
  registry().push_back(std::move(kind));
}

}  // namespace affpcl
