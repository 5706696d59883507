"""A storm with faults against a real service: `make soak MINUTES=5`, or `python -m tests.soak`.

run.py               the phases: calm, warming up, the storm, counting what is left
service.py           the service, its processes and its folders
models.py, texts.py  the tiny models that it serves, and texts of random words
small_disks.py       disks that can be full without harm
clock.py, clock.c    a clock that can be set forward
http.py              HTTP with single bytes in the hands of the caller
client.py            a client, and the manners in which it sends
requests.py          requests of the native interface; dialects.py and wrong_requests.py have the others
documents.py         what a client does in several requests; also glossaries.py
storm.py             the clients, and what they choose
faults.py            what goes wrong meanwhile
oracle.py            what each request may be answered
ledger.py            what was sent and what came of it; counts.py compares that with the metrics
leftovers.py         what must not be left over
result.py, report.py the outcome and its tables
"""
