# SPDX-License-Identifier: Apache-2.0
"""What takt has done since: for what must not happen. A pause would say nothing on a machine that is busy; when takt has
looked again and nothing came of it, nothing will.
"""
import kit


def readings(client, gpu):
    """When takt has read that GPU, as far as it remembers."""
    return [at for at, *_ in client.ask("GET", f"/v1/history?gpu={gpu}&metric=power&step=raw")["points"]]


def read_again(client, gpu=0, times=10):
    """Waits until takt has read that GPU so often from now on: ten times a second, unless it was told otherwise."""
    seen = max(readings(client, gpu), default=0)
    kit.until(lambda: sum(at > seen for at in readings(client, gpu)) >= times, lambda: (seen, readings(client, gpu)))


def planned_again(client):
    """Waits until takt has been through all jobs: one without GPUs, which waits for nobody, has come and gone."""
    assert client.wait(client.submit(["true"])["id"])["state"] == "done"
