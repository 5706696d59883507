"""A storm with faults against a real service: `make soak MINUTES=5`, or `python -m tests.soak`.

service.py     the service, its processes and its folders
models.py      the tiny models that it serves
http.py        a client that sees and sends single bytes
texts.py       texts of random words
requests.py    the requests, by dialect and route
journeys.py    what a client does in several requests: documents, glossaries
manners.py     how a client sends: whole, slowly, cut off, leaving before its answer
storm.py       the clients
faults.py      what goes wrong meanwhile
oracle.py      what each request may be answered
leftovers.py   what must not be left over
report.py      the table
"""
