"""The documents as tests read them: files, code blocks, headings, links, and the commands inside code."""
import collections
import os
import re
import shlex
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
Block = collections.namedtuple("Block", "document line language text")
Link = collections.namedtuple("Link", "document line target")
PROGRAMS = ("turnstiled", "turnstile", "turnstile-content")


def markdown_files():
    """All that git knows, or would know after the next add."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return sorted(path for path in listed.stdout.split() if os.path.exists(os.path.join(ROOT, path)))
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files if name.endswith(".md")]
    return sorted(found)


def read(document):
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        return file.read()


def blocks(document):
    """Fenced code, with its language and the line where it begins."""
    found, inside = [], None
    for number, line in enumerate(read(document).splitlines(), 1):
        fence = re.match(r"(\s*)```(\w*)\s*$", line)
        if inside is None and fence:
            inside, indent, language, begin = [], len(fence[1]), fence[2], number + 1
        elif inside is not None and fence and not fence[2]:
            found.append(Block(document, begin, language, "\n".join(text[indent:] for text in inside)))
            inside = None
        elif inside is not None:
            inside.append(line)
    if inside is not None:
        raise ValueError(f"{document}: the code that begins at line {begin} never ends")
    return found


def prose(document):
    """The lines with their numbers, without fenced code."""
    inside = False
    for number, line in enumerate(read(document).splitlines(), 1):
        if re.match(r"\s*```", line):
            inside = not inside
        elif not inside:
            yield number, line


def links(document):
    found = []
    for number, line in prose(document):
        bare = re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), line)
        for match in re.finditer(r"\]\(([^()\s]+(?:\([^()]*\))?)\)", bare):
            found.append(Link(document, number, line[match.start(1):match.end(1)]))
        for match in re.finditer(r"(?:src|srcset|href)=\"([^\"]+)\"", bare):
            found.append(Link(document, number, match[1]))
    return found


def anchor(heading):
    """As GitHub makes it of a heading's text."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    kept = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return kept.replace(" ", "-")


def anchors(document):
    seen, found = collections.Counter(), set()
    for _, line in prose(document):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = anchor(heading[1])
            found.add(name if seen[name] == 0 else f"{name}-{seen[name]}")
            seen[name] += 1
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return found


def commands_of(text):
    """The command lines in a block of shell, without prompts, comments and what continues on the next line."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        line = re.sub(r"^\s*\$ ", "", line).strip()
        yield re.sub(r"\s+#\s.*$", "", line)


def program_calls(text):
    """(program, words) for each call of ours in a block of shell. What cannot be read as words is left out."""
    for line in commands_of(text):
        for part in re.split(r"\|\||&&|[;|]|\$\(", line):
            try:
                words = shlex.split(part.rstrip(")").strip(), comments=True)
            except ValueError:
                continue
            while words and re.match(r"^(\w+=\S*|sudo|systemd-run|env|nohup|time)$", words[0]):
                words = words[1:]
            if words and os.path.basename(words[0]) in PROGRAMS:
                yield os.path.basename(words[0]), words[1:]
