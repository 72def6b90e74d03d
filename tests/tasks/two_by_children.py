"""Two charges, each by a child process that also notes it, after the charge.

usage: two_by_children.py PAYMENTS_URL
"""

import http.client
import os
import sys
import urllib.parse


def charge(url, n):
    where = urllib.parse.urlsplit(url)
    shop = http.client.HTTPConnection(where.hostname, where.port)
    headers = {
        "Authorization": "Bearer sk_test_child",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    shop.request("POST", "/v1/charges", f"amount={n}00&currency=eur&source=tok_visa", headers)
    assert shop.getresponse().read()
    with open("new", "w") as file:
        file.write(f"charged customer {n}")
    os.rename("new", f"done-{n}")


for n in (1, 2):
    if not os.path.exists(f"done-{n}"):
        child = os.fork()
        if child == 0:
            charge(sys.argv[1], n)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(1)
