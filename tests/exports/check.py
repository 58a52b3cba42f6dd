#!/usr/bin/env python3
"""Reads what `fathom history export` writes with the programs that it is written for.

    check.py FATHOM FOLDER

The history has 60 runs with a planted step of 7 % before run 41, a run with a hostile name, and
one of this program with its record. Every number that a reader finds is compared with the
database's own, through `fathom history sql`.
"""

import csv
import io
import json
import math
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from otava.importer import CsvImporter
from otava.series import AnalysisOptions
from otava.test_config import create_csv_test_config
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as prometheus
import pyarrow.csv
import pyarrow.parquet

RUNS = 60
STEP_AT = 40
FIRST_MS = 1_780_000_000_123
HOSTILE = "=</script><script>\"',\\\n# EOF\r\x1b[31m" + "x" * 10_000


def main():
    fathom, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    os.chdir(folder)
    os.environ["FATHOM_HISTORY"] = str(folder.resolve() / "history.db")
    exports = Exports(str(fathom))
    exports.fill()
    for check in [
        exports.csv,
        exports.parquet,
        exports.openmetrics,
        exports.prometheus_blocks,
        exports.otlp,
        exports.otava,
        exports.metrics_file,
    ]:
        said = check()
        print(f"exports: {check.__name__}: {said}")


class Exports:
    def __init__(self, fathom):
        self.fathom = fathom

    def run(self, *words):
        done = subprocess.run([self.fathom, *words], capture_output=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"fathom {' '.join(words)}: {done.stderr.decode()}")
        return done.stdout

    def export(self, form, *words):
        return self.run("history", "export", "--format", form, *words)

    def fill(self):
        random = 1
        lines = []
        for number in range(RUNS):
            random = random * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise = 1 + 0.02 * ((random >> 33) / 2**31 - 0.5)
            iops = 100_000 * noise * (1 if number < STEP_AT else 0.93)
            lines.append(run(number, "a", [
                ["", "read", "iops", iops, iops * 0.99, iops * 1.01],
                ["", "read", "bw", iops * 4096, None, None],
                ["", "read", "clat_p99.9", 1e9 / iops, None, None],
                ["target", "service", "sent", number, None, None],
            ], {"commit": f"c{number // 10}"}))
        lines.append(run(RUNS, HOSTILE, [[HOSTILE, "read", "iops", 7, None, None]],
                         {HOSTILE[:40]: HOSTILE}))
        Path("runs.json").write_text("".join(lines))
        self.run("history", "import", "runs.json")
        self.run("run", "--history", "--name=own", "--ioengine=null", "--size=4m",
                 "--rw=randrw", "--bs=4k", "--tag=a=b", "--metrics-file=run.prom")
        found = json.loads(self.run("history", "sql", "--json",
                                    "SELECT run, grp, direction, metric, value FROM measure"))
        self.values = {(one["run"], one["grp"], one["direction"], one["metric"]): one["value"]
                       for one in found}
        self.runs = RUNS + 2

    def columns(self, headings, cell):
        """Counts the cells of columns of metrics, and compares each with the database."""
        known = defaultdict(list)
        for key, value in self.values.items():
            run_number, group, direction, metric = key
            of_service = f"service.{group}.{metric}"
            name = f"{direction}.{metric}" if not group else f"{group}/{direction}.{metric}"
            known[of_service if direction == "service" else name].append((run_number, value))
        seen = 0
        for name, values in known.items():
            fitting = [one for one in headings
                       if one == name or one.startswith(name + " (")]
            if len(fitting) != 1:
                raise SystemExit(f"{name[:80]!r} has these columns: {fitting}")
            for run_number, value in values:
                if cell(run_number, fitting[0]) != value:
                    raise SystemExit(f"run {run_number}, {fitting[0][:80]!r}: not {value}")
                seen += 1
        if seen != len(self.values):
            raise SystemExit(f"{seen} of {len(self.values)} numbers found")
        return f"{seen} numbers of {self.runs} runs are the database's"

    def csv(self):
        data = self.export("csv")
        rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
        by_run = {int(row["run"]): row for row in rows}
        # Hostile names are the same but for control characters and the formula's apostrophe.
        plain = "'" + "".join("\ufffd" if ord(one) < 32 and one != "\n" else one
                              for one in HOSTILE)
        renamed = {name.replace(plain, HOSTILE): name for name in rows[0]}
        said = self.columns(renamed, lambda run_number, heading:
                            float(by_run[run_number][renamed[heading]]))
        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        table = pyarrow.csv.read_csv(io.BytesIO(data), parse_options=options)
        if (table.num_rows, table.num_columns) != (self.runs, len(rows[0])):
            raise SystemExit(f"pyarrow reads {table.num_rows} × {table.num_columns}")
        return said

    def parquet(self):
        self.export("parquet", "--output", "runs.parquet")
        rows = pyarrow.parquet.read_table("runs.parquet").to_pylist()
        by_run = {row["run"]: row for row in rows}
        begun = datetime.fromtimestamp(FIRST_MS / 1000, timezone.utc)
        if by_run[1]["begun (UTC)"] != begun:
            raise SystemExit(f"run 1 began at {by_run[1]['begun (UTC)']}, not {begun}")
        if by_run[RUNS + 1][f"tag.{HOSTILE[:40]}"] != HOSTILE:
            raise SystemExit("the hostile tag is another one")
        return self.columns(rows[0], lambda run_number, heading: by_run[run_number][heading])

    def openmetrics(self):
        text = self.export("openmetrics").decode()
        samples = [sample for family in openmetrics.text_string_to_metric_families(text)
                   for sample in family.samples]
        infos = [one for one in samples if one.name == "fathom_run_info"]
        hostile = [one for one in samples if one.labels.get("job") == HOSTILE]
        if len(samples) - len(infos) != len(self.values) or len(infos) != self.runs:
            raise SystemExit(f"{len(samples)} samples, {len(infos)} of them runs")
        if [one.value for one in hostile] != [7]:
            raise SystemExit("the hostile name is another one")
        iops = [one.value for one in samples if one.name == "fathom_iops"
                and one.labels.get("job") is None and one.labels["plan"] == "1"]
        want = [self.values[number + 1, "", "read", "iops"] for number in range(RUNS)]
        if iops != want:
            raise SystemExit("IOPS differ from the database's")
        Path("runs.om").write_text(text)
        return f"{len(samples)} samples, read by the reference parser"

    def prometheus_blocks(self):
        if shutil.which("promtool") is None:
            return "skipped: no promtool"
        done = subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", "runs.om", "blocks"],
            capture_output=True, check=False)
        if done.returncode != 0 or not list(Path("blocks").iterdir()):
            raise SystemExit(f"promtool: {(done.stdout + done.stderr).decode()[-2000:]}")
        return "promtool makes blocks of the samples"

    def otlp(self):
        lines = self.export("otlp").decode().splitlines()
        if len(lines) != self.runs:
            raise SystemExit(f"{len(lines)} lines of {self.runs} runs")
        numbers, histograms = 0, 0
        for line in lines:
            request = json_format.Parse(line, ExportMetricsServiceRequest(),
                                        ignore_unknown_fields=False)
            for metric in request.resource_metrics[0].scope_metrics[0].metrics:
                numbers += len(metric.gauge.data_points)
                for point in metric.histogram.data_points:
                    histograms += 1
                    counts = point.bucket_counts
                    if sum(counts) != point.count or len(counts) != len(point.explicit_bounds) + 1:
                        raise SystemExit(f"{metric.name}: {list(counts)} of {point.count}")
        if numbers != len(self.values) or histograms < 2:
            raise SystemExit(f"{numbers} numbers, {histograms} histograms")
        return f"{numbers} numbers and {histograms} histograms fit the official definitions"

    def otava(self):
        self.export("otava", "--plan", "1", "--output", "otava.csv")
        test = create_csv_test_config("nightly", {
            "type": "csv",
            "file": "otava.csv",
            "time_column": "time",
            "attributes": ["run", "commit"],
            "metrics": {"iops": {"column": "read.iops", "direction": 1}},
        })
        series = CsvImporter().fetch_data(test)
        if series.attributes["run"][0] != "1" or len(series.time) != RUNS:
            raise SystemExit(f"Otava reads {len(series.time)} runs")
        found = series.analyze(AnalysisOptions()).change_points["iops"]
        places = [int(point.index) for point in found]
        if [place for place in places if abs(place - STEP_AT) <= 2] == []:
            raise SystemExit(f"Otava finds changes at {places}, not at {STEP_AT}")
        return f"Otava finds the step of {STEP_AT} at {places}"

    def metrics_file(self):
        text = Path("run.prom").read_text()
        families = list(prometheus.text_string_to_metric_families(text))
        counts = [sample for family in families for sample in family.samples
                  if sample.name == "fathom_clat_seconds_count"]
        ops = sum(sample.value for family in families for sample in family.samples
                  if sample.name == "fathom_ops_total")
        if ops != 1024 or not math.isclose(sum(one.value for one in counts), ops):
            raise SystemExit(f"{ops} ops, {counts}")
        if shutil.which("promtool") is None:
            return f"{len(families)} families; skipped: no promtool"
        done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(),
                              capture_output=True, check=False)
        if done.returncode != 0 or done.stderr:
            raise SystemExit(f"promtool: {done.stderr.decode()}")
        return f"promtool finds no fault in {len(families)} families"


def run(number, name, measures, tags):
    """Returns a line as `fathom history import` reads it."""
    return json.dumps({
        "fathom_run": 1,
        "uuid": f"{number:032x}",
        "begun_ms": FIRST_MS + number * 3_600_000,
        "wall_ms": 1500,
        "plan": f"[{name}]\nrw=randread\n",
        "machine": {"cpu": "one"},
        "subject": {"program": "fathom 1", "kernel": "6.12"},
        "tags": tags,
        "measures": measures,
    }) + "\n"


if __name__ == "__main__":
    main()
