// The centre of a federation, for the transports that are written in Python.
#include "affpcl/federation/centre.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "affpcl/output/federation_file.h"
#include "python/core/core.h"

namespace affpcl::python {
namespace {

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

void bind_federation(nb::module_& m) {
  m.def(
      "message_kind",
      [](const nb::bytes& message) {
        return std::string(name_of(SiteMessage::decoded(view_of(message)).kind));
      },
      nb::arg("message"),
      "What a message of a federation is: open, begin, shares, total, end, ...");
  m.def(
      "message_progress",
      [](const nb::bytes& message) { return SiteMessage::decoded(view_of(message)).progress; },
      nb::arg("message"), "How much of its work the site that sent a message has done.");
  m.def(
      "message_numbers",
      [](const nb::bytes& message) {
        const SiteMessage decoded = SiteMessage::decoded(view_of(message));
        const std::string numbers = decoded.collective == Collective::kSum ? decoded.bytes : "";
        return nb::bytes(numbers.data(), numbers.size());
      },
      nb::arg("message"),
      "The part or the total of a sum that a message carries, 16 bytes a number; nothing of "
      "texts.");
  nb::class_<FederationCentre>(
      m, "FederationCentre",
      "Adds what the sites of a federation send; message() is what all are sent next.")
      .def(
          "__init__",
          [](FederationCentre* self, std::string job, std::vector<std::string> sites,
             std::size_t min_sites, bool secure, std::string journal) {
            new (self) FederationCentre({.job = std::move(job),
                                         .sites = std::move(sites),
                                         .min_sites = min_sites,
                                         .secure = secure,
                                         .journal = std::move(journal)});
          },
          nb::arg("job"), nb::arg("sites"), nb::kw_only(), nb::arg("min_sites") = 0,
          nb::arg("secure") = true, nb::arg("journal") = "")
      .def("message",
           [](const FederationCentre& c) {
             const std::string bytes = c.message();
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("expected", &FederationCentre::expected,
           "Sites whose answer to this message is still missing.")
      .def(
          "take",
          [](FederationCentre& c, const std::string& site, const nb::bytes& answer) {
            c.take(site, view_of(answer));
          },
          nb::arg("site"), nb::arg("answer"))
      .def("lost", &FederationCentre::lost, nb::arg("site"))
      .def("back", &FederationCentre::back, nb::arg("site"))
      .def("drop_lost", &FederationCentre::drop_lost)
      .def("may_drop", &FederationCentre::may_drop)
      .def("fail", &FederationCentre::fail, nb::arg("why"))
      .def_prop_ro("state",
                   [](const FederationCentre& c) { return std::string(name_of(c.state())); })
      .def_prop_ro("status", [](const FederationCentre& c) { return c.status(); })
      .def_prop_ro("progress", &FederationCentre::progress)
      .def_prop_ro("rounds", &FederationCentre::rounds)
      .def_prop_ro("sites", [](const FederationCentre& c) { return c.sites(); })
      .def_prop_ro(
          "model", [](const FederationCentre& c) { return c.model(); },
          "The model that all sites have in common: centre.json.")
      .def_prop_ro(
          "ledger", [](const FederationCentre& c) { return ledger_json(c); },
          "What was added, as JSON.");
}

}  // namespace affpcl::python
