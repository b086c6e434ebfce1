# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus for tests: it scrapes takt as a user's would, and answers queries."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import kit

CONFIG = """\
global: {{scrape_interval: {interval}, evaluation_interval: {interval}}}
rule_files: {rules}
scrape_configs:
- job_name: gpus
  scheme: {scheme}
  tls_config: {{{tls}}}
  static_configs: [{{targets: ["{target}"]}}]
"""


def need():
    """Skips the case where there is no Prometheus."""
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        raise kit.Skip("prometheus is not installed")


def lint(page):
    """What promtool says of a page in the plain format, line by line; its parser must take it."""
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, timeout=kit.WAIT_S)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode in (0, 3), (done.returncode, said)  # 3: it has opinions on names
    return said.splitlines()


class Prometheus:
    def __init__(self, folder, target, ca_file=None, interval="1s", rules=()):
        self.said = os.path.join(folder, "prometheus.log")
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(interval=interval, target=target, rules=json.dumps(list(rules)),
                                     scheme="https" if ca_file else "http",
                                     tls=f'ca_file: "{ca_file}"' if ca_file else ""))
        self.log = open(self.said, "ab")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/prometheus-data",
             "--web.listen-address=127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=folder)

    def port(self):
        """The one that it was given, once it has said so."""
        with open(self.said, encoding="utf-8") as file:
            told = re.search(r'msg="Listening on" address=127\.0\.0\.1:(\d+)', file.read())
        if not told:
            raise ConnectionRefusedError("it does not listen yet")
        return told[1]

    def get(self, path, **words):
        url = f"http://127.0.0.1:{self.port()}{path}?{urllib.parse.urlencode(words, doseq=True)}"
        with urllib.request.urlopen(url, timeout=kit.WAIT_S) as answer:
            return json.load(answer)["data"]

    def query(self, text):
        """[(labels, value)] of an instant query; [] while Prometheus does not answer yet."""
        with contextlib.suppress(OSError):
            return [(one["metric"], float(one["value"][1])) for one in self.get("/api/v1/query", query=text)["result"]]
        return []

    def targets(self):
        with contextlib.suppress(OSError):
            return self.get("/api/v1/targets")["activeTargets"]
        return []

    def end(self):
        self.process.kill()
        self.process.wait(kit.WAIT_S)
        self.log.close()


@contextlib.contextmanager
def prometheus(folder, target, **more):
    one = Prometheus(folder, target, **more)
    try:
        kit.until(one.targets, "Prometheus answers")
        yield one
    finally:
        one.end()
