# SPDX-License-Identifier: Apache-2.0
"""What the tables of docs/research/clocks-replay.md have in common: replayed rows go to a file, and from it into the page."""
import argparse
import csv
import os

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(SOURCE, "docs/research/clocks-replay.md")


def put_into_page(begin, lines, end):
    """In place of what stands between these two lines of it."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page.split(begin)[0] + "\n".join([begin, "", *lines, end]) + page.split(end)[1])


def main(rows_of, docs, seeds, head, results):
    """The command line: rows_of(arguments) yields rows of `results` under `head`; docs() makes the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("takt", nargs="?")
    parser.add_argument("--points")
    parser.add_argument("--seeds", default=seeds)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    if args.docs:
        docs()
        return
    if not args.takt or not args.points:
        parser.error("takt and --points, or --docs")
    rows = []
    for row in rows_of(args):
        rows.append(row)
        print(*row[5:], sep=",", flush=True)
    if args.record:
        with open(results, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)
