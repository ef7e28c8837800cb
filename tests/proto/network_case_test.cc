// Tests the loader of network cases with good files and with every kind of bad one.
#include "proto/network_case/network_case.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "proto/network_case/name_table.h"
#include "sim/base/error.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

using namespace literals;

class NetworkCaseFileTest : public ::testing::Test {
 protected:
  NetworkCaseFileTest() : folder_(temporary_folder() / "network_case") {
    std::filesystem::create_directories(folder_);
  }
  ~NetworkCaseFileTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string write_compressed(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path;
  }

  std::vector<std::string> problems_of_file(const std::string& path) const {
    try {
      load_network_case(path);
    } catch (const ConfigError& error) {
      std::vector<std::string> problems;
      for (const Problem& problem : error.problems()) {
        problems.push_back((problem.field == path ? "FILE" : problem.field) + ": " +
                           problem.message);
      }
      return problems;
    }
    return {};
  }

  std::vector<std::string> problems_of(const std::string& text) const {
    return problems_of_file(write("case.json", text));
  }

 private:
  std::filesystem::path folder_;
};

using Texts = std::vector<std::string>;

constexpr const char* kLinks =
    R"("links":[{"id":"ab","from":"A","to":"B","capacity_Bps":1e9,"latency_s":2e-6},
                {"id":7,"from":"B","to":"C","capacity_Bps":2000000000,"latency_s":0}])";

std::string case_of(const std::string& flows) {
  return std::string(R"({"format":"stepsim-oracle-flow/1","name":"mine",)") + kLinks +
         R"(,"flows":[)" + flows + "]}";
}

std::string flow(const std::string& id, const std::string& route, const std::string& after = "[]",
                 const std::string& more = "") {
  return R"({"id":)" + id + R"(,"route":)" + route + R"(,"bytes":1000,"start_s":1e-6,"after":)" +
         after + more + "}";
}

TEST_F(NetworkCaseFileTest, ReadsLinksFlowsAndWhatIsExpected) {
  const std::string text = case_of(flow("\"x\"", R"(["ab",7])", "[]", R"(,"src":"A","dst":"C")") +
                                   "," + flow("3", "[7]", R"(["x"])"));
  const std::string path = write_compressed(
      "case.json.gz", text.substr(0, text.size() - 1) +
                          R"(,"expect":[{"flow":3,"finish_s":0.5},{"flow":"none","finish_s":1}]})");
  const NetworkCase input = load_network_case(path);
  EXPECT_EQ(input.name, "mine");
  EXPECT_FALSE(input.packets);
  ASSERT_EQ(input.fabric.links().size(), 2u);
  EXPECT_EQ(input.fabric.links()[0].latency, Duration(2'000'000));
  EXPECT_EQ(input.fabric.links()[1].bandwidth, 2_GBps);
  EXPECT_EQ(input.fabric.link_name(LinkId(0)), "A>B");
  ASSERT_EQ(input.flows.flows.size(), 2u);
  const auto route = input.flows.route(input.flows.flows[0]);
  EXPECT_EQ(std::vector(route.begin(), route.end()), (std::vector{LinkId(0), LinkId(1)}));
  EXPECT_EQ(input.flows.flows[0].bytes, Bytes(1000));
  EXPECT_EQ(input.flows.flows[0].start, Time{Duration(1'000'000)});
  ASSERT_EQ(input.flows.dependences.size(), 1u);
  EXPECT_EQ(input.flows.dependences[0].flow, 1u);
  EXPECT_EQ(input.flows.dependences[0].after, 0u);
  EXPECT_EQ(input.flow_ids.name(0), "\"x\"");
  EXPECT_EQ(input.flow_ids.name(1), "3");
  ASSERT_EQ(input.expected.size(), 1u);  // "none" is ignored
  EXPECT_EQ(input.expected[0].flow, 1u);
  EXPECT_EQ(input.expected[0].finish_ps, 0.5e12);
}

TEST_F(NetworkCaseFileTest, FlowsMayStandBeforeLinksAndBeforeThoseTheyWaitFor) {
  const std::string path =
      write("case.json", R"({"expect":[{"flow":1,"finish_s":2}],"flows":[)" +
                             flow("0", "[7]", "[1]") + "," + flow("1", R"(["ab"])") + "]," +
                             kLinks + R"(,"format":"stepsim-oracle-flow/1"})");
  const NetworkCase input = load_network_case(path);
  ASSERT_EQ(input.flows.flows.size(), 2u);
  ASSERT_EQ(input.flows.dependences.size(), 1u);
  EXPECT_EQ(input.flows.dependences[0].after, 1u);
  EXPECT_EQ(input.expected.size(), 1u);
}

TEST_F(NetworkCaseFileTest, PacketCasesHaveExactPicosecondsAndRules) {
  const std::string path =
      write("case.json",
            R"({"format":"stepsim-oracle-packet/1","packet_bytes":4096,"switching":"cut_through",
          "header_bytes":64,
          "links":[{"id":"ab","from":"A","to":"B","capacity_Bps":1,"latency_ps":3,"latency_s":0}],
          "flows":[{"id":"f","route":["ab"],"bytes":1,"start_ps":9007199254740993,"after":[]}],
          "expect":[{"flow":"f","finish_s":1,"finish_ps":5}]})");
  const NetworkCase input = load_network_case(path);
  ASSERT_TRUE(input.packets);
  EXPECT_EQ(input.packets->packet_bytes, Bytes(4096));
  EXPECT_EQ(input.packets->header_bytes, Bytes(64));
  EXPECT_EQ(input.fabric.links()[0].latency, Duration(3));
  EXPECT_EQ(input.flows.flows[0].start, Time{Duration(9007199254740993)});
  EXPECT_EQ(input.expected[0].finish_ps, 5);
}

TEST_F(NetworkCaseFileTest, RoutesMustBeConnected) {
  EXPECT_EQ(
      problems_of(case_of(flow("1", R"([7,"ab"])", "[]", R"(,"src":"C","dst":"D")"))),
      (Texts{
          R"(flows[0].route[1]: link "ab" begins at "A", but the link before it ends at "C" (flow 1))",
          R"(flows[0].src: is "C", but the route begins at "B" (flow 1))",
          R"(flows[0].dst: is "D", but the route ends at "B" (flow 1))"}));
  EXPECT_EQ(problems_of(case_of(flow("1", "[]", "[]", R"(,"src":"A","dst":"B")"))),
            (Texts{"flows[0].route: must have at least one link, is empty (flow 1)"}));
}

TEST_F(NetworkCaseFileTest, IdsMustBeThereOnceAndKeepTheirType) {
  EXPECT_EQ(problems_of(case_of(flow("1", R"(["7"])") + "," + flow("1", "[7]", R"(["1"])"))),
            (Texts{R"(flows[0].route[0]: no link has the id "7" (flow 1))",
                   "flows[1].id: 1 is the id of an earlier flow too",
                   R"(flows[1].after[0]: no flow has the id "1")"}));
  EXPECT_EQ(problems_of(case_of(flow("1", R"(["ab","ab"])"))).front(),
            R"(flows[0].route[1]: uses link "ab" for the second time (flow 1))");
}

TEST_F(NetworkCaseFileTest, FlowsMustNotWaitInACircle) {
  EXPECT_EQ(problems_of(case_of(flow("1", "[7]", "[3]") + "," + flow("2", "[7]", "[1]") + "," +
                                flow("3", "[7]", "[2]") + "," + flow("4", "[7]", "[4]"))),
            (Texts{"flows: can never begin, because they wait for each other: 1 waits for 3 waits "
                   "for 2 waits for 1",
                   "flows: can never begin, because they wait for each other: 4 waits for 4"}));
}

TEST_F(NetworkCaseFileTest, AllWrongNumbersComeAtOnce) {
  EXPECT_EQ(
      problems_of(
          R"({"format":"stepsim-oracle-flow/1",
              "links":[{"id":"a","from":"A","to":"B","capacity_Bps":0,"latency_s":-1},
                       {"id":"b","from":"A","to":"B","capacity_Bps":NaN,"latency_s":Infinity},
                       {"id":"c","from":"A","to":"B","capacity_Bps":-5,"latency_s":null},
                       {"id":"d","from":"A","to":"B"}],
              "flows":[{"id":"f","route":["a"],"bytes":-1,"start_s":-Infinity,"after":[]},
                       {"id":"g","route":"a","bytes":1.5,"start_s":1e9,"after":{}},
                       {"id":["h"],"route":[1.5],"bytes":"many","start_s":true,"after":[null]},
                       "i"]})"),
      (Texts{
          R"(links[0].capacity_Bps: must be above 0, is 0 (link "a"))",
          R"(links[0].latency_s: must be a time from 0 to 9200000 s, is -1 (link "a"))",
          R"(links[1].capacity_Bps: must be a number, is "NaN" (link "b"))",
          R"(links[1].latency_s: must be a number, is "Infinity" (link "b"))",
          R"(links[2].capacity_Bps: must be above 0, is -5 (link "c"))",
          R"(links[2].latency_s: must be a number, is null (link "c"))",
          R"(links[3].capacity_Bps: is missing (link "d"))",
          R"(links[3].latency_s: is missing (link "d"))",
          R"(flows[0].bytes: must be a whole number from 0 to 9223372036854775807, is -1 (flow "f"))",
          R"(flows[0].start_s: must be a number, is "-Infinity" (flow "f"))",
          R"(flows[1].bytes: must be a whole number from 0 to 9223372036854775807, is 1.5 (flow "g"))",
          R"(flows[1].start_s: must be a time from 0 to 9200000 s, is 1000000000.0 (flow "g"))",
          R"(flows[1].route: must be a list of ids, is "a" (flow "g"))",
          R"(flows[1].after: must be a list of ids, is {} (flow "g"))",
          R"(flows[2].id: must be a string or a whole number, is ["h"])",
          R"(flows[2].bytes: must be a whole number from 0 to 9223372036854775807, is "many" (flow ["h"]))",
          R"(flows[2].start_s: must be a number, is true (flow ["h"]))",
          R"(flows[2].route[0]: must be a string or a whole number, is 1.5 (flow ["h"]))",
          R"(flows[2].after[0]: must be a string or a whole number, is null (flow ["h"]))",
          R"(flows[3]: must be an object, is "i")"}));
}

TEST_F(NetworkCaseFileTest, SizesUpToTheLargestAreTaken) {
  const auto bytes = [](const std::string& number) {
    return case_of(R"({"id":1,"route":[7],"start_s":0,"after":[],"bytes":)" + number + "}");
  };
  EXPECT_EQ(problems_of(bytes("9223372036854775807")), Texts{});
  EXPECT_EQ(problems_of(bytes("9223372036854775808")).size(), 1u);
  EXPECT_EQ(problems_of(bytes("0")), Texts{});
  EXPECT_EQ(problems_of(bytes("1e9")), Texts{});
}

TEST_F(NetworkCaseFileTest, PacketRulesAreChecked) {
  const std::string rest =
      std::string(R"("format":"stepsim-oracle-packet/1","flows":[],)") + kLinks;
  EXPECT_EQ(problems_of("{" + rest + "}"),
            (Texts{"packet_bytes: is missing",
                   R"(switching: must be "store_and_forward" or "cut_through", is null)"}));
  EXPECT_EQ(problems_of(R"({"packet_bytes":0,"switching":"store_and_forward",)" + rest + "}"),
            Texts{"packet_bytes: must be a whole number of bytes from 1 to 2147483647, is 0"});
  EXPECT_EQ(problems_of(R"({"packet_bytes":64,"header_bytes":65,"switching":"cut_through",)" +
                        rest + "}"),
            Texts{"header_bytes: must be a whole number of bytes from 1 to 64, is 65"});
}

TEST_F(NetworkCaseFileTest, WhatIsNoCaseIsRefused) {
  EXPECT_EQ(
      problems_of("{}"),
      (Texts{
          "links: is missing", "flows: is missing",
          R"(format: is missing; must be "stepsim-oracle-flow/1" or "stepsim-oracle-packet/1")"}));
  EXPECT_EQ(problems_of("[1]"), Texts{"FILE: must be a JSON object, is a list"});
  EXPECT_EQ(problems_of("3"), Texts{"FILE: must be a JSON object"});
  EXPECT_EQ(problems_of(R"({"format":"x","links":3,"flows":{}})").front(), "links: must be a list");
  EXPECT_EQ(problems_of("{\"links\":[").front().substr(0, 44),
            "FILE: is not JSON: parse error at line 1, co");
}

TEST_F(NetworkCaseFileTest, FilesThatBreakOffOrAreDamagedAreRefused) {
  const std::string path = write_compressed("case.json.gz", case_of(flow("1", "[7]")));
  EXPECT_EQ(problems_of_file(path), Texts{});
  const auto size = std::filesystem::file_size(path);
  // The last 8 bytes are the checksum and the size. Without them the whole text can still be read.
  for (const std::uintmax_t kept : {size - 1, size - 8, size / 2, std::uintmax_t{12}}) {
    std::filesystem::resize_file(path, kept);
    EXPECT_EQ(problems_of_file(path),
              Texts{"FILE: is truncated: the gzip stream stops before its end"});
  }
  const std::string whole = write_compressed("other.json.gz", case_of(flow("1", "[7]")));
  std::fstream(whole, std::ios::in | std::ios::out | std::ios::binary).seekp(-8, std::ios::end)
      << "crc!";
  EXPECT_EQ(problems_of_file(whole), Texts{"FILE: is damaged: incorrect data check"});
  EXPECT_EQ(problems_of_file(whole + "none"),
            Texts{"FILE: can't be read: No such file or directory"});
}

TEST(NameTableTest, NumbersNamesInOrderAndFindsThemAgain) {
  NameTable table;
  EXPECT_FALSE(table.find("a"));
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(table.add(std::to_string(i)), i);
  EXPECT_FALSE(table.add("17"));
  EXPECT_EQ(table.find("17"), 17u);
  EXPECT_EQ(table.name(999), "999");
  EXPECT_FALSE(table.find("1000"));
  EXPECT_EQ(table.find_or_add(""), 1000u);
  EXPECT_EQ(table.find_or_add(""), 1000u);
  EXPECT_EQ(table.size(), 1001u);
}

}  // namespace
}  // namespace stepsim
