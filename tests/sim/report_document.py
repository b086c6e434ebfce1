# SPDX-License-Identifier: Apache-2.0
"""The document in a page that takt has written with --html."""
import html.parser
import json


class Script(html.parser.HTMLParser):
    """What stands in the page's <script id="document">, as a browser delimits it."""

    def __init__(self):
        super().__init__()
        self.inside, self.text = False, ""

    def handle_starttag(self, tag, attrs):
        self.inside = dict(attrs).get("id") == "document"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        self.text += data if self.inside else ""


def document_of(path):
    """Parsed; fails where the page is not whole."""
    with open(path, encoding="utf-8") as stream:
        page = stream.read()
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n"), path
    script = Script()
    script.feed(page)
    script.close()
    return json.loads(script.text)
