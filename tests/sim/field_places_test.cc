// The value of a row may be in a member of a member, in an entry of an array, or in an element of a
// list that is based on fields above.

#include <gtest/gtest.h>

#include "sim/fields/field.h"
#include "sim/fields/field_help.h"

namespace stepsim {
namespace {

struct Engine {
  double power = 0;
};
struct Stop {
  std::int64_t minutes = 1;
};
struct Train {
  Engine front;
  std::optional<Engine> back;
  std::array<std::int64_t, 2> seats{};  // by class
  Stop usual;
  std::vector<Stop> stops;
};

const FieldTable<Train>& train_fields() {
  static const FieldTable<Train> kTable = [] {
    static const FieldTable<Stop> kStop = [] {
      FieldTable<Stop> table("Stop");
      table.add("minutes", &Stop::minutes, {.help = "How long it lasts."});
      return table;
    }();
    FieldTable<Train> table("Train");
    table.add_inner("front_power", &Train::front, &Engine::power, Limits::positive(),
                    {.help = "Power."});
    table.add_inner("back_power", &Train::back, &Engine::power, Limits::positive(),
                    {.help = "Power.", .unset = "no engine"});
    table.add_entry("second_class", &Train::seats, 1, Limits::at_least(0), {.help = "Seats."});
    table.group("usual", &Train::usual, kStop, {.help = "A stop as usual."});
    table.list<Stop>("stops", &Train::stops, kStop, [](const Train& train) { return train.usual; },
                     {.help = "Stops."});
    return table;
  }();
  return kTable;
}

void read(Train& train, std::string_view field, std::string_view text) {
  EXPECT_EQ(train_fields().find(field)->read(text, &train), std::vector<std::string>{});
}

TEST(FieldPlacesTest, AMemberOfAMemberIsReadAndWrittenAsTheOutersOwn) {
  Train train;
  read(train, "front_power", "2.5");
  EXPECT_EQ(train.front.power, 2.5);
  EXPECT_EQ(train_fields().changed(train), (std::vector<FieldValue>{{"front_power", "2.5"}}));
}

TEST(FieldPlacesTest, AnOptionalStructIsThereOnceOneOfItsFieldsIs) {
  Train train;
  EXPECT_EQ(train_fields().find("back_power")->write(&train), std::nullopt);
  EXPECT_EQ(train_fields().find("back_power")->number(&train), std::nullopt);
  read(train, "back_power", "0");
  ASSERT_TRUE(train.back);
  train.front.power = 1;
  EXPECT_EQ(train_fields().problems(train),
            (std::vector<Problem>{{"back_power", "must be positive, is 0"}}));
}

TEST(FieldPlacesTest, AnEntryOfAnArrayIsAField) {
  Train train;
  read(train, "second_class", "80");
  EXPECT_EQ(train.seats, (std::array<std::int64_t, 2>{0, 80}));
}

TEST(FieldPlacesTest, AnElementStartsFromTheFieldsAbove) {
  Train train;
  train.usual.minutes = 3;
  const AnyField& stops = *train_fields().find("stops");
  stops.add_element(&train);
  EXPECT_EQ(train.stops.at(0).minutes, 3);
}

}  // namespace
}  // namespace stepsim
