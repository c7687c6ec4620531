#!/usr/bin/env python3
"""Every link between documents leads somewhere: the file is there, and the heading that it names."""
import os
import sys
import unittest
import xml.dom.minidom

import documents

sys.path.insert(0, os.path.join(documents.ROOT, "bench"))
import plots  # noqa: E402


class LinksTest(unittest.TestCase):
    def test_files_and_headings_that_are_linked_exist(self):
        wrong = []
        for document in documents.markdown_files():
            for link in documents.links(document):
                problem = self.problem_of(link)
                if problem:
                    wrong.append(f"{link.document}:{link.line}: {link.target}: {problem}")
        self.assertEqual(wrong, [])

    @staticmethod
    def problem_of(link):
        if "://" in link.target or link.target.startswith("mailto:"):
            return None
        path, _, name = link.target.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(link.document), path)) if path else link.document
        if target.startswith(".."):
            return "outside of the repository"
        if not os.path.exists(os.path.join(documents.ROOT, target)):
            return "there is no such file"
        if name and target.endswith(".md") and name not in documents.anchors(target):
            return f"no heading of {target} has this name"
        return None

    def test_every_document_can_be_reached_from_the_index(self):
        reached, next_ones = set(), ["README.md", "docs/index.md"]
        while next_ones:
            document = next_ones.pop()
            if document in reached:
                continue
            reached.add(document)
            for link in documents.links(document):
                path = link.target.partition("#")[0]
                target = os.path.normpath(os.path.join(os.path.dirname(document), path))
                if path.endswith(".md") and os.path.exists(os.path.join(documents.ROOT, target)):
                    next_ones.append(target)
                elif os.path.isdir(os.path.join(documents.ROOT, target)) and "decisions" in target:
                    next_ones += [name for name in documents.markdown_files() if name.startswith("docs/decisions/")]
        lost = [name for name in documents.markdown_files() if name.startswith("docs/") and name not in reached]
        self.assertEqual(lost, [], "nobody finds these: link them from docs/index.md")

    def test_the_pictures_of_the_benchmarks_are_drawn_from_its_tables(self):
        for name, picture in plots.charts(*plots.tables_of(documents.read("docs/benchmarks.md"))).items():
            self.assertEqual(documents.read("docs/images/" + name), picture, "bench/plots.py draws it again")
            xml.dom.minidom.parseString(picture.encode())

    def test_headings_become_anchors_as_github_makes_them(self):
        for heading, wanted in (("Telling 10,000 waiters", "telling-10000-waiters"), ("GET /lock/status", "get-lockstatus"),
                                ("exec: a command under a lock", "exec-a-command-under-a-lock"),
                                ("`once`: work", "once-work"), ("1. Words", "1-words")):
            self.assertEqual(documents.anchor(heading), wanted)


if __name__ == "__main__":
    unittest.main()
