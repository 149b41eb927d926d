"""What a user's type checker must see. Checked by mypy in `test_package.py`; never run."""

from __future__ import annotations

from typing import List, Optional

import postrider
from postrider.services import AsyncService, Service


class Typed(Service):
    def handle(self) -> None:
        order = self.request.payload
        result: postrider.Result = self.rest["Billing API"].post({"order": order}, {"id": 1}, path="/x")
        if result.is_ok and result.response is not None:
            status: Optional[int] = result.response.status
            self.logger.info("answered %s", status)
        self.response.payload = {"msg_id": self.request.queue.msg_id, "topic": self.publish("orders", order).topic}


class TypedLater(AsyncService):
    async def handle(self) -> List[str]:
        result: postrider.Result = await self.mllp["EHR Main"].send("MSH|…")
        published: postrider.Published = await self.publish("orders", {"a": 1})
        return [
            published.msg_id,
            result.cid or "",
            *[one.id async for one in self.client.deliveries.list(status="DLQ")],
        ]


def blocking(client: postrider.Client) -> List[postrider.Delivery]:
    patient = client.fhir["FHIR.Sample"].resource("Patient")
    patient.birthDate = "1974-12-25"
    patient.save()
    client.soap["Registry"].invoke("submit", {"a": 1}).check()
    return list(client.deliveries.list(connection="Billing API"))
