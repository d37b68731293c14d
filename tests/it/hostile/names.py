# Reads all languages that names are written in with their own parsers: JSON with a text
# for each comes in, and JSON with what they say goes out.
import ast
import base64
import gzip
import html
import html.parser
import json
import re
import sys


class Page(html.parser.HTMLParser):
    """All elements with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.elements = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.add(" ".join([tag] + sorted(name for name, _ in attributes)))


def report(text):
    """The report in a page."""
    packed = re.search('id="packed-report">([^<]*)<', text)
    if packed:
        return gzip.decompress(base64.b64decode(packed[1])).decode()
    return re.search('id="report">([^<]*)<', text)[1]


def stages(text):
    """The names that a Python program has as keys."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "pipeline_stages":
            return list(ast.literal_eval(node.value))


given = json.load(sys.stdin)
page = Page(given["html"])
print(
    json.dumps(
        {
            "keras": stages(given["keras"]),
            "python": [
                type(node).__name__
                for text in given["python"]
                for node in ast.parse(text).body
            ],
            "elements": sorted(page.elements),
            "page": json.loads(report(given["html"])),
            "markdown": [
                html.unescape(code)
                for code in re.findall("<code>(.*?)</code>", given["markdown"])
            ],
        }
    )
)
