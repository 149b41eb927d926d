"""Services: your code behind a channel, run from its durable queue.

from postrider.services import Service

class OrderIntake(Service):
    def handle(self):
        self.rest["Fulfilment"].post(self.request.payload)

python -m postrider.services DIR --listen 127.0.0.1:9900
"""

from __future__ import annotations

from .request import BadPayload, Params, Queue, Request
from .response import Response
from .service import AsyncService, Service

__all__ = ["AsyncService", "BadPayload", "Params", "Queue", "Request", "Response", "Service"]
