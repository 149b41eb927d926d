from zato.server.service import Service

class OrderIntake(Service):

    def handle(self):
        # Runs from the queue, once per request, retried if it raises
        order = self.request.payload
        self.rest['Fulfilment'].post(order)

    def get_queue_response(self):
        # Runs as the request is accepted, what it sets is the caller's response
        self.response.payload = {
            'accepted': True,
            'order_id': self.request.payload['order_id'],
            'msg_id': self.request.queue.msg_id,
        }
