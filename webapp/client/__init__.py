"""A typed client of the REST API, generated from its OpenAPI document. Needs httpx2, and nothing of Django.

from webapp.client import Client

with Client("https://kernels.example", token="kw_...") as client:
    run = client.runs_create({"source": open("f.c").read(), "filename": "f.c"})
    for frame in client.run_frames(run["id"]):
        print(frame)
"""

from webapp.client.http import ApiProblem as ApiProblem
from webapp.client.http import Client as Client
from webapp.client.http import Unreachable as Unreachable
