#include "page/page_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace turnstile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const char* name) {
  const PageFile* file = find_page_file(name);
  return file != nullptr ? std::string(file->text) : std::string();
}

TEST(Page, EveryFileIsThereByteForByte) {
  for (const char* name : {"index.html", "page.css", "main.js", "rows.js", "icon.svg"}) {
    std::ifstream file(std::string(PAGE_SOURCE_DIR "/") + name, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    EXPECT_EQ(text_of(name), bytes.str()) << name;
  }
  EXPECT_EQ(find_page_file(""), nullptr);
  EXPECT_EQ(find_page_file("../page/index.html"), nullptr);
}

TEST(Page, HasNothingInlineAndNothingFromElsewhere) {
  const std::string html = text_of("index.html");
  EXPECT_FALSE(
      std::regex_search(html, std::regex(R"(<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:)")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(text_of("page.css"), Not(HasSubstr("url(")));
}

TEST(Page, MakesNoMarkupFromTexts) {
  for (const char* name :
       {"main.js", "rows.js", "connection.js", "detail.js", "feed.js", "dialogs.js", "charts.js", "dom.js"})
    EXPECT_FALSE(std::regex_search(text_of(name),
                                   std::regex("innerHTML|outerHTML|insertAdjacentHTML|document\\.write")))
        << name;
}

TEST(Page, EveryModuleThatIsImportedOrPreloadedIsThere) {
  const std::regex address(R"(/page/([a-z_]+\.[a-z]+))");
  for (const char* name : {"index.html", "main.js", "rows.js", "connection.js", "detail.js", "feed.js",
                           "dialogs.js", "charts.js"}) {
    const std::string text = text_of(name);
    for (std::sregex_iterator at(text.begin(), text.end(), address), end; at != end; ++at)
      EXPECT_NE(find_page_file((*at)[1].str()), nullptr) << name << " wants " << (*at)[1];
  }
}

TEST(Page, ABrowserMayKeepAFileButAsksEachTimeAndTrustsNobodyElse) {
  const PageFile& file = *find_page_file("index.html");
  EXPECT_EQ(file.content_type, "text/html; charset=utf-8");
  const std::string headers = page_headers(file, true);
  EXPECT_THAT(headers, HasSubstr("ETag: \"" + std::string(file.etag.substr(1))));
  EXPECT_THAT(headers, HasSubstr("Vary: Accept\r\n"));
  EXPECT_THAT(headers, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
  EXPECT_THAT(headers, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(headers, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(page_headers(file, false), Not(HasSubstr("Vary")));
  EXPECT_NE(file.etag, find_page_file("page.css")->etag);
}

}  // namespace
}  // namespace turnstile
