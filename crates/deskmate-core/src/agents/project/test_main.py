import json
import pathlib
import unittest

import main


class Work(unittest.TestCase):
    def test_every_call_is_made_in_order(self):
        calls = json.loads((pathlib.Path(__file__).parent / "calls.json").read_text())
        made = []
        done = main.work(lambda operation, **fields: made.append(operation) or {"ok": True}, calls)
        self.assertEqual(made, [operation for operation, _ in calls])
        self.assertEqual(len(done), len(calls))


if __name__ == "__main__":
    unittest.main()
