"""Starts the SOAP server of npm `soap`, a parser of its own that checks a UsernameToken of WS-Security.

    python soap_node.py [--stop-with-stdin]

It prints `{"port": N}` once it answers. `soap_node.js` beside it says what it offers.
"""

from node_peer import serve

if __name__ == "__main__":
    serve("soap", "soap_node.js")
