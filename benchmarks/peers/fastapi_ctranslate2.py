"""The alternative that a good engineer would write: FastAPI before CTranslate2, with dynamic batching.

Sentences of all requests enter one queue. As many collectors as CTranslate2 has workers read it: each waits for one
sentence, then a few milliseconds for more, translates the batch in a thread, and answers. While all are busy the queue
grows, and so does the next batch.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import ctranslate2
import sentencex
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from tokenizers import Tokenizer

Tokens = list[str]


class TranslationRequest(BaseModel):
    text: str | list[str]
    beam_size: int = 4


class Batcher:
    """Translates sentences in batches of one beam size.

    Args:
        workers: batches in parallel.
        max_batch: most sentences of one batch.
        delay_s: time to wait for more sentences.
    """

    def __init__(self, translator: ctranslate2.Translator, workers: int, max_batch: int, delay_s: float) -> None:
        self._translator = translator
        self._workers, self._max_batch, self._delay_s = workers, max_batch, delay_s
        self._waiting: dict[int, asyncio.Queue[tuple[Tokens, asyncio.Future[Tokens]]]] = {}
        self._collectors: list[asyncio.Task[None]] = []
        self._executor = ThreadPoolExecutor(workers)

    async def translate(self, sources: list[Tokens], beam_size: int) -> list[Tokens]:
        """Return one target per source, in order."""
        if beam_size not in self._waiting:
            self._waiting[beam_size] = asyncio.Queue()
            self._collectors += [asyncio.create_task(self._collect(beam_size)) for _ in range(self._workers)]
        futures: list[asyncio.Future[Tokens]] = [asyncio.get_running_loop().create_future() for _ in sources]
        for work in zip(sources, futures, strict=True):
            self._waiting[beam_size].put_nowait(work)
        return await asyncio.gather(*futures)

    def close(self) -> None:
        for collector in self._collectors:
            collector.cancel()
        self._executor.shutdown()

    async def _collect(self, beam_size: int) -> None:
        loop, waiting = asyncio.get_running_loop(), self._waiting[beam_size]
        while True:
            batch = [await waiting.get()]
            if self._delay_s and waiting.qsize() < self._max_batch - 1:
                await asyncio.sleep(self._delay_s)
            while len(batch) < self._max_batch and not waiting.empty():
                batch.append(waiting.get_nowait())
            sources = [source for source, _ in batch]
            try:
                targets = await loop.run_in_executor(self._executor, self._translate, sources, beam_size)
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), target in zip(batch, targets, strict=True):
                if not future.done():
                    future.set_result(target)

    def _translate(self, sources: list[Tokens], beam_size: int) -> list[Tokens]:
        results = self._translator.translate_batch(
            sources, beam_size=beam_size, max_input_length=0, max_decoding_length=256
        )
        return [result.hypotheses[0] for result in results]


def create_app(batcher: Batcher, tokenizer: Tokenizer) -> FastAPI:
    """Build the application, with POST /translate and GET /health."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.close()

    app = FastAPI(lifespan=lifespan)
    id_of = tokenizer.get_vocab()
    token_of = {i: token for token, i in id_of.items()}

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/translate")
    async def translate(request: TranslationRequest) -> dict[str, list[dict[str, str]]]:
        texts = [request.text] if isinstance(request.text, str) else request.text
        sentences = [[sentence.strip() for sentence in sentencex.segment("en", text)] for text in texts]
        encodings = tokenizer.encode_batch_fast([sentence for text in sentences for sentence in text])
        sources = [[token_of[i] for i in encoding.ids] for encoding in encodings]
        targets = iter(await batcher.translate(sources, request.beam_size))
        ids = [[[id_of[token] for token in next(targets)] for _ in text] for text in sentences]
        return {"translations": [{"text": " ".join(tokenizer.decode_batch(text))} for text in ids]}

    return app


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="CTranslate2 model directory")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--settings", type=json.loads, required=True, help="workers, max_batch and delay_s, as JSON")
    arguments = parser.parse_args()
    workers = arguments.settings["workers"]
    translator = ctranslate2.Translator(
        str(arguments.model), compute_type="int8", inter_threads=workers, intra_threads=1
    )
    app = create_app(Batcher(translator, **arguments.settings), Tokenizer.from_file(str(arguments.tokenizer)))
    uvicorn.run(
        app, host="127.0.0.1", port=arguments.port, access_log=False, log_level="warning", timeout_keep_alive=75
    )


if __name__ == "__main__":
    main()
