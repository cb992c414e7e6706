"""Serves pages to ask a model, on this machine only.

    python demo.py --model=quickstart/run
    python demo.py --model=quickstart/packages_export

An export of run_classifier.py, run_squad.py, run_ner.py or run_swag.py
answers its task. The folder of a run fills in masks, if it has the head,
ranks the neighbours of a text, and shows the attention of a layer and head.
"""

import dataclasses
import os
import sys

from bert.common import extras, flags, storage
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.common.flags import flag
from bert.common.progress import say
from bert.modeling import openvino_network
from bert.serving import predict_settings


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of demo.py."""

    model: str | None = flag(
        None,
        "Folder of a SavedModel or of a run, or prefix of a checkpoint.",
        required=True,
        path=True,
    )
    trust_model: bool = flag(
        False,
        "Load a SavedModel that you did not export yourself: loading it runs "
        "it as a program.",
    )
    port: int = flag(
        8000, "Port on 127.0.0.1; 0: any free one.", at_least=0, at_most=65535
    )
    top_k: int = flag(5, "Number of words for each mask.", at_least=1)

    def of_predict(self) -> predict_settings.Settings:
        """The settings with which predict.py loads the SavedModel."""
        return predict_settings.Settings(
            model=self.model, trust_model=self.trust_model
        )

    def check(self) -> bool:
        """Checks the model's folder; returns whether it is an export.

        Raises:
            UserError: it is no model, a SavedModel of unknown source, or a
                library of the pages is missing.
        """
        graph = os.path.join(self.model, "saved_model.pb")
        is_network = openvino_network.is_network(self.model)
        is_export = is_network or storage.is_file(graph)
        is_run = storage.find(self.model, "*.index")
        if is_export:
            self.of_predict().check()
        elif not is_run and not storage.exists(f"{self.model}.index"):
            raise UserError(
                "no model",
                path=self.model,
                expected="the folder of a SavedModel or of a run with a "
                "checkpoint",
            )

        extras.check("demo", "gradio")
        return is_export


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    is_export = settings.check()

    # Before gradio is imported: it tells its makers nothing.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    from bert.reports import demo_pages

    # Before the model is loaded: the port may be taken.
    opened = demo_pages.listen(settings.port)
    if is_export:
        pages = demo_pages.pages_of_export(settings.of_predict())
    else:
        pages = demo_pages.pages_of_run(settings.model, settings.top_k)

    app = demo_pages.make_app(settings.model, pages)
    say(
        f"serving {settings.model} on http://{demo_pages.HOST}:"
        f"{opened.getsockname()[1]}; Ctrl-C ends"
    )
    demo_pages.serve(app, opened)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
