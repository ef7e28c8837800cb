// Tables of fields: what is read, refused, written, listed and documented follows from the rows.

#include "sim/fields/field.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"
#include "sim/fields/field_help.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen };
std::string_view name_of(Colour colour) {
  return colour == Colour::kRed ? "red" : "green";
}

struct Wheel {
  double size = 1;
};
struct Car {
  std::int64_t seats = 4;
  std::optional<std::int64_t> doors;
  Colour colour = Colour::kRed;
  std::optional<Bandwidth> radio;
  std::vector<std::int64_t> gears;
  Wheel spare;
  std::vector<Wheel> wheels;
};

}  // namespace

template <>
inline constexpr std::size_t kValuesOf<Colour> = 2;

namespace {

const FieldTable<Wheel>& wheel_fields() {
  static const FieldTable<Wheel> kTable = [] {
    FieldTable<Wheel> table("Wheel");
    table.add("size", &Wheel::size, Limits::fraction(), {.help = "Its size."});
    return table;
  }();
  return kTable;
}

const FieldTable<Car>& car_fields() {
  static const FieldTable<Car> kTable = [] {
    FieldTable<Car> table("Car");
    table.theme("Inside", "Where people sit.");
    table.add("seats", &Car::seats, Limits::between(1, 9),
              {.help = "Seats of the car.", .advice = "More cost more.", .required = true});
    table.theme("Outside");
    table.add("doors", &Car::doors, Limits::between(1, 5).or_zero(),
              {.help = "Doors.", .unset = "as many as seats"});
    table.add("colour", &Car::colour, {.help = "Its colour."});
    table.add("radio", &Car::radio, {.help = "What it receives."});
    table.add("gears", &Car::gears, {.help = "Its gears."});
    table.group("spare", &Car::spare, wheel_fields(), {.help = "The spare wheel."});
    table.list("wheels", &Car::wheels, wheel_fields(), {.help = "The others."});
    return table;
  }();
  return kTable;
}

// The problem of reading `text` into a field, or "".
std::string read(Car& car, std::string_view field, std::string_view text) {
  const std::vector<std::string> problems = car_fields().find(field)->read(text, &car);
  return problems.empty() ? "" : problems.front();
}

TEST(FieldTest, ReadsEveryTypeFromText) {
  Car car;
  EXPECT_EQ(read(car, "seats", "5"), "");
  EXPECT_EQ(read(car, "doors", "3"), "");
  EXPECT_EQ(read(car, "colour", "green"), "");
  EXPECT_EQ(read(car, "radio", "8Gbps"), "");
  EXPECT_EQ(read(car, "gears", "1,2,3"), "");
  EXPECT_EQ(car.seats, 5);
  EXPECT_EQ(car.doors, 3);
  EXPECT_EQ(car.colour, Colour::kGreen);
  EXPECT_EQ(car.radio, Bandwidth(1e9));
  EXPECT_EQ(car.gears, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(FieldTest, ZeroUnsetsOnlyWhereTheRowSaysSo) {
  Car car;
  car.doors = 3;
  EXPECT_EQ(read(car, "doors", "0"), "");
  EXPECT_EQ(car.doors, std::nullopt);
}

TEST(FieldTest, ARefusedTextSaysWhatIsTakenAndChangesNothing) {
  Car car;
  EXPECT_EQ(read(car, "seats", "four"), "must be a whole number, is \"four\"");
  EXPECT_EQ(read(car, "colour", "blue"), "must be red or green, is \"blue\"");
  EXPECT_EQ(read(car, "wheels", "4"), "must be a group of fields: size, is \"4\"");
  EXPECT_EQ(car.seats, 4);
  EXPECT_EQ(car.colour, Colour::kRed);
}

TEST(FieldTest, LimitsAreCheckedInEveryElement) {
  Car car;
  car.seats = 10;
  car.doors = 6;
  car.wheels = {{1}, {1.5}};
  EXPECT_EQ(car_fields().problems(car),
            (std::vector<Problem>{{"seats", "must be at most 9, is 10"},
                                  {"doors", "must be at most 5, is 6"},
                                  {"wheels[1].size", "must be above 0 and at most 1, is 1.5"}}));
  EXPECT_TRUE(car_fields().problems(Car{}).empty());
  car.doors = 0;
  EXPECT_EQ(car_fields().problems(car)[1], (Problem{"doors", "must be at least 1, is 0"}))
      << "unset is nothing, not 0";
}

TEST(FieldTest, LimitsMayBeASetOfNumbersWithMeanings) {
  const Limits sizes = Limits::choice_of({{2, "bf16"}, {4, "fp32"}});
  EXPECT_TRUE(within(sizes, 4));
  EXPECT_FALSE(within(sizes, 3));
  EXPECT_EQ(broken_text(sizes, 3, "3"), "must be 2 (bf16) or 4 (fp32), is 3");
}

TEST(FieldTest, LimitsMayLeaveOutTheirEnds) {
  EXPECT_FALSE(within(Limits::positive(), 0));
  EXPECT_TRUE(within(Limits::positive(), 0.1));
  EXPECT_FALSE(within(Limits::share(), 1));
  EXPECT_TRUE(within(Limits::share(), 0));
  EXPECT_FALSE(within(Limits::fraction(), std::nan("")));
  EXPECT_FALSE(within(Limits::between(2, 4), 0));
  EXPECT_TRUE(within(Limits::between(2, 4).or_zero(), 0));
  EXPECT_EQ(broken_text(Limits::positive(), 0, "0"), "must be positive, is 0");
  EXPECT_EQ(broken_text(Limits::share(), 1, "1"), "must be at least 0 and below 1, is 1");
}

TEST(FieldTest, WhatDiffersFromTheDefaultIsListed) {
  Car car;
  EXPECT_TRUE(car_fields().changed(car).empty());
  car.colour = Colour::kGreen;
  car.gears = {1, 2};
  car.wheels = {{0.5}};
  EXPECT_EQ(
      car_fields().changed(car),
      (std::vector<FieldValue>{{"colour", "green"}, {"gears", "1,2"}, {"wheels[0].size", "0.5"}}));
  EXPECT_EQ(car_fields().in_force(Car{}),
            (std::vector<FieldValue>{
                {"seats", "4"}, {"colour", "red"}, {"gears", ""}, {"spare.size", "1"}}));
}

TEST(FieldTest, NumbersThatPeopleWriteOtherwiseGetAHint) {
  EXPECT_EQ(Text<std::int64_t>::hint("8k"), "; did you mean 8192 (binary) or 8000?");
  EXPECT_EQ(Text<std::int64_t>::hint("8Ki"), "; did you mean 8192?");
  EXPECT_EQ(Text<std::int64_t>::hint("1_024"), "; did you mean 1024?");
  EXPECT_EQ(Text<std::int64_t>::hint("1e3"), "; did you mean 1000?");
  EXPECT_EQ(Text<std::int64_t>::hint("8.0"), "; did you mean 8?");
  EXPECT_EQ(Text<std::int64_t>::hint("8.5"), "");
  EXPECT_EQ(Text<std::int32_t>::hint("3000000000"), "") << "a number, but too large";
  EXPECT_EQ(Text<std::int64_t>::hint("eight"), "");
  EXPECT_EQ(Text<bool>::hint("Yes"), "; did you mean true?");
  EXPECT_EQ(Text<Bandwidth>::hint("400gbps"), "; did you mean 400Gbps?");
  EXPECT_EQ(Text<Bandwidth>::hint("50GB"), "; did you mean 50GB/s?");
  EXPECT_EQ(Text<Bytes>::hint("80gib"), "; did you mean 80GiB?");
  EXPECT_EQ(Text<Bandwidth>::hint("fast"), "");
}

TEST(FieldTest, WordsStandBetweenBlanks) {
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(words_of(" a=1\tbb \r\n c"), (Words{"a=1", "bb", "c"}));
  EXPECT_EQ(words_of("one"), Words{"one"});
  EXPECT_EQ(words_of(" \n"), Words{});
  EXPECT_EQ(words_of(""), Words{});
}

TEST(FieldHelpTest, NamesDefaultLimitsAndAdvice) {
  EXPECT_EQ(help_text_of(car_fields(), "seats"),
            "  seats\n"
            "      (a whole number, 1 to 9; must be given)\n"
            "      Seats of the car.\n"
            "      More cost more.\n");
  EXPECT_EQ(help_text_of(car_fields(), "doors"),
            "  doors\n"
            "      (a whole number, 1 to 5; 0: as if left out; default: as many as seats)\n"
            "      Doors.\n");
  EXPECT_EQ(help_text_of(car_fields(), "keys"), std::nullopt);
  EXPECT_TRUE(help_text_of(car_fields(), "spare.size").has_value());
  EXPECT_TRUE(help_text_of(car_fields()).starts_with("Inside\n\n  Where people sit.\n\n  seats\n"));
  const std::string markdown = markdown_of(car_fields());
  EXPECT_TRUE(markdown.starts_with("## Inside\n\nWhere people sit.\n\n### `seats`\n\n"))
      << markdown;
  EXPECT_NE(markdown.find("### `wheels[i].size`"), std::string::npos) << markdown;
}

// A third of the letters may be wrong, at least one. Neighbours that changed places are one
// mistake, wherever they stand.
TEST(SuggestionTest, CountsMistakes) {
  const auto meant = [](std::string_view name, std::string candidate) {
    return !did_you_mean(name, std::vector{std::move(candidate)}).empty();
  };
  EXPECT_TRUE(meant("pt", "tp"));
  EXPECT_TRUE(meant("sequenec", "sequence"));
  EXPECT_TRUE(meant("esquenec", "sequence")) << "two of eight";
  EXPECT_TRUE(meant("Se_Quence", "sequence")) << "case and dashes are none";
  EXPECT_FALSE(meant("xyzwenec", "sequence")) << "four letters and a swap";
  EXPECT_FALSE(meant("xyzec", "sequence"));
  EXPECT_FALSE(meant("xyzec", "abcce")) << "three letters and a swap";
}

TEST(SmallLettersTest, ChangeOnlyAToZ) {
  EXPECT_EQ(in_small_letters("AZaz-19_@[`{"), "azaz-19_@[`{");
  EXPECT_EQ(in_small_letters("8\u00d7\u00c9"), "8\u00d7\u00c9");
  EXPECT_EQ(in_small_letters(""), "");
}

}  // namespace
}  // namespace stepsim
