// Tables whose columns, levels and scales are known from a centre: rows of agents that took no part
// in it are encoded as its own were.
#pragma once

#include <string>
#include <vector>

#include "affpcl/table/encode.h"
#include "affpcl/table/model.h"

namespace affpcl {

struct KnownColumns {
  Encoding encoding;
  std::vector<double> y_mean, y_sd;  // by channel: what targets are shifted and divided by
  std::vector<double> within = {};   // covariance of the columns within the centre's agents
  std::size_t agents = 0;            // of the centre
  std::string by = "the centre";     // what knows them
};
KnownColumns known_columns(const Model& centre);
std::string known_note(
    const KnownColumns& known);  // what one should know of the centre; empty: nothing

// The same options with all that the centre settles: what is predicted, from which columns, and how.
// Columns of the target and of agents that are named keep their names. BadInput where agents cannot
// join the centre.
FrameOptions join_options(const FrameOptions& options, const Model& centre);

// The centre's encoding for a table with this header; refuses one that lacks columns. Without a
// column of agents each file is one agent.
Encoding begin_known(const std::vector<std::string>& files, const std::vector<std::string>& header,
                     const FrameOptions& options);
TableOptions known_needed(const FrameOptions& options, const Encoding& encoding);
// Columns of the table that the centre does not have, in a sentence; empty: none.
std::string unused_note(const std::vector<std::string>& header, const FrameOptions& options,
                        const Encoding& encoding);

// As encode.h has them, by the centre's columns.
std::vector<std::int32_t> known_classes(const Tables& tables, const FrameOptions& options,
                                        const Encoding& encoding, Marked marked);
std::vector<Column*> known_features(Tables& tables, const FrameOptions& options,
                                    Processes& processes, const Encoding& encoding, Marked marked);
std::vector<double> encode_known(const std::vector<Column*>& features,
                                 const std::vector<std::size_t>& order, Processes& processes,
                                 const Encoding& encoding, std::vector<std::string>& notes);

}  // namespace affpcl
