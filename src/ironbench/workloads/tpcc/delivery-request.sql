-- A terminal queues a Delivery, which another client carries out.
\set queued 1
