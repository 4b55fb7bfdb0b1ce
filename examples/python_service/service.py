"""Say what kind of content a file holds: POST its bytes, and get a label.

    python service.py CONFIG [--port 8000]

CONFIG is the model's own config.min.json, which fetch_model.py put beside the model.
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from content_type import Model

MOST_BYTES = 16_000_000


class Classifier:
    """The model and what it was trained with. One serves all threads."""

    def __init__(self, config: Path) -> None:
        self.config = json.loads(config.read_text(encoding="utf-8"))
        self.model = Model()

    def classify(self, data: bytes) -> dict[str, Any]:
        """The label of the highest score."""
        scores = self.model.run(bytes=self._read_features(data)[None]).target_label[0]
        place = int(np.argmax(scores))
        return {"label": self.config["target_labels_space"][place], "score": float(scores[place])}

    def _read_features(self, data: bytes) -> np.ndarray[Any, Any]:
        """int32[beg_size + end_size]: the first and the last bytes without the white space around them."""
        config = self.config
        features = np.full(config["beg_size"] + config["end_size"], config["padding_token"], np.int32)
        first = data[: config["block_size"]].lstrip()[: config["beg_size"]]
        last = data[-config["block_size"] :].rstrip()[-config["end_size"] :]
        features[: len(first)] = np.frombuffer(first, np.uint8)
        features[len(features) - len(last) :] = np.frombuffer(last, np.uint8)
        return features


class Handler(BaseHTTPRequestHandler):
    """One request. The server has the classifier."""

    server: Server

    def do_GET(self) -> None:
        """Which variant runs."""
        if self.path == "/health":
            self._answer(200, {"report": str(self.server.classifier.model.report)})
        else:
            self._answer(404, {"error": "POST a file's bytes to /, or GET /health"})

    def do_POST(self) -> None:
        """What the bytes hold."""
        size = int(self.headers.get("Content-Length", 0))
        if not 0 < size <= MOST_BYTES:
            self._answer(413, {"error": f"send 1 to {MOST_BYTES} bytes"})
        else:
            self._answer(200, self.server.classifier.classify(self.rfile.read(size)))

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """The service, with its classifier."""

    def __init__(self, port: int, classifier: Classifier) -> None:
        self.classifier = classifier
        super().__init__(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description="Say what kind of content a file holds.")
    parser.add_argument("config", type=Path, metavar="CONFIG")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    with Server(options.port, Classifier(options.config)) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
