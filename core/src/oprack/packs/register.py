"""Register: what a pack's hooks call, and the contributions that come of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError, ManifestError
from oprack.packs.installed import manifest as manifests
from oprack.packs.installed.resolve import import_module, package_directory
from oprack.packs.pack import Contributions, file_state
from oprack.packs.variables import CORE, PREFIX

if TYPE_CHECKING:
    from oprack.op import OpDef, OpFacets, OpVersion

NAMESPACES = (
    *("layers", "functional", "optimizer", "initializer", "metrics", "nets", "nn", "amp", "quantization", "array_api"),
    "sparse",
)
"""Namespaces that packs extend through the hook oprack_layers, as modules `oprack.<namespace>`."""
UNNAMED = ("operators", "tensor_operators", "fuzz", "fuzz_lives")
"""Those that are no modules: Python's operators (oprack.layers.operators), the blocks of which `oprack.testing.fuzz`
builds nets, and the parts of nets that live there."""

STAGES = ("fold", "canonicalize", "fuse", "lower")
"""When a pass runs; see `Register.pass_`."""


class Register:
    """Registers what one pack brings. All methods raise on bad input, with the pack's line in the traceback.

    Args:
        pack: The pack.
        owner: Its distribution.
    """

    def __init__(self, pack: str, owner: str) -> None:
        self.pack, self.owner = pack, owner
        self.contributions = Contributions()

    def __repr__(self) -> str:
        return f"<register of pack {self.pack} ({self.owner})>"

    def manifest(self, package: str, filename: str = manifests.FILENAME) -> None:
        """Register the ops, kernels and layers that a manifest lists.

        Args:
            package: The package in whose directory the manifest is, usually `__package__`.
            filename: Name of the manifest.

        Raises:
            ManifestError: It is missing or malformed.
            PackVersionError: It was written for a newer core.
        """
        if not isinstance(package, str) or not package:
            raise ManifestError(
                f"{self!r}: manifest({package!r}) names no package; write register.manifest(__package__) in a module "
                "that is part of the pack's package"
            )
        directory = package_directory(package)
        if directory is None:
            raise ManifestError(f"{self!r}: package {package!r} has no directory; expected one that holds {filename}")
        path = Path(directory, filename)
        # Taken before reading: if the file changes in between, its state differs and the cache is invalid.
        state = file_state(path)
        manifest = manifests.read(path)
        self.contributions.manifests.append(manifest)
        self.contributions.files.append((str(path), *state))
        for namespace, modules in manifest.layers.items():
            for module, names in modules.items():
                self.layers(module, *names, namespace=namespace)

    def op(self, definition: type[OpDef]) -> None:
        """Register an op by its definition class.

        Raises:
            DefinitionError: It is not a definition class, or this pack registered the op before.
        """
        from oprack.op import OpDef

        if not (isinstance(definition, type) and issubclass(definition, OpDef) and definition.op_type):
            raise DefinitionError(f'{self!r}: op({definition!r}) is no op; expected class Name(OpDef, type="...")')
        if definition.op_type in self.contributions.definitions:
            raise DefinitionError(f"{self!r}: op {definition.op_type!r} is registered twice by this pack")
        self.contributions.definitions[definition.op_type] = definition

    def operator(self, op_type: str | OpFacets, *facets: Any) -> None:
        """Register facets of an op, which may belong to another pack; see `oprack.register_operator`.

        They are imported whenever the pack is looked at. OpFacets in a module below `<package>.ops` are named by the
        manifest instead, and imported when the op is first used.

        Args:
            op_type: The op, or OpFacets, which hold facets already.
            facets: Classes derived from the facet bases of oprack.op, or instances of them, in any order.

        Raises:
            DefinitionError: No facet was passed, or something that is not a facet.
        """
        from oprack.op.facets import OpFacets, require_facet

        if isinstance(op_type, OpFacets):
            self.operator(op_type.op_type, *op_type.facets, *facets)
            return
        for facet in facets:
            require_facet(facet, f"{self!r}: operator({op_type!r}, ...)")
        if not facets:
            raise DefinitionError(f"{self!r}: operator({op_type!r}) has no facet; expected at least one")
        self.contributions.facets.append((op_type, facets))

    def kernel(self, function: Callable[..., Any]) -> None:
        """Register the kernels that @kernel declared on a function.

        Raises:
            DefinitionError: It declares no kernel.
        """
        from oprack.kernel import kernel_specs

        holder = ModuleType(getattr(function, "__module__", None) or "")
        holder.function = function  # type: ignore[attr-defined]
        specs = list(kernel_specs(holder))
        if not specs:
            raise DefinitionError(f"{self!r}: {function!r} is no kernel; expected a function decorated with @kernel")
        self.contributions.kernels += specs

    def module(self, name: str) -> None:
        """Import a module and register all its kernels; those named in a manifest are imported on first use instead.

        Raises:
            DefinitionError: The module declares no kernel.
        """
        from oprack.kernel import kernel_specs

        specs = list(kernel_specs(import_module(name, repr(self))))
        if not specs:
            raise DefinitionError(f"{self!r}: module {name!r} has no function decorated with @kernel")
        self.contributions.kernels += specs

    def role(self, role: str, op_type: str) -> None:
        """Assign an op to a role; see the hook oprack_vocabulary.

        Args:
            role: Name of a role of `oprack.op.vocabulary`, or of one that a pack adds by `new_role`.
            op_type: The op; it must have the signature of the role.

        Raises:
            DefinitionError: An argument is no text, or this pack assigned an op to the role before.
        """
        if not isinstance(role, str) or not role:
            raise DefinitionError(f"{self!r}: role({role!r}, ...); expected the name of a role")
        if not isinstance(op_type, str) or not op_type:
            raise DefinitionError(f"{self!r}: role({role!r}, {op_type!r}); expected an op type")
        if any(kind == "role" and key == role for kind, key, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: role {role!r} is given twice by this pack")
        self.contributions.targets.append(("role", role, op_type))

    def new_role(self, name: str, signature: str, meaning: str, wanted_by: str) -> None:
        """Add a role to the vocabulary: an op that this distribution needs, and that packs bring.

        `oprack.packs.op_for(name)` finds the op that a pack assigned to it.

        Args:
            name: Name of the role.
            signature: What is bound and set, as "X Y; axis -> Out": inputs, attributes, outputs.
            meaning: What the op computes.
            wanted_by: The calls that need it, for messages.

        Raises:
            DefinitionError: The signature names no output, or this pack added the role before.
        """
        from oprack.op.vocabulary import Role

        try:
            Role.declared(name, signature, meaning, wanted_by)
        except DefinitionError as e:
            raise DefinitionError(f"{self!r}: {e}") from None
        if any(kind == "new role" and key == name for kind, key, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: new_role({name!r}, ...) is given twice by this pack")
        self.contributions.targets.append(("new role", name, json.dumps([signature, meaning, wanted_by])))

    def op_version(self, version: OpVersion) -> None:
        """Register the version history of an op whose definition has none.

        Raises:
            DefinitionError: It is not an OpVersion.
        """
        from oprack.op import OpVersion

        if not isinstance(version, OpVersion):
            raise DefinitionError(f'{self!r}: op_version({version!r}); expected OpVersion("op").checkpoint(...)')
        self.contributions.versions.append(version)

    def layer(self, name: str, target: str, namespace: str = "layers") -> None:
        """Register a function as `oprack.<namespace>.<name>`, imported on first use.

        Args:
            name: The name; an identifier without a leading underscore.
            target: The function, as "module:function".
            namespace: One of NAMESPACES or UNNAMED.

        Raises:
            DefinitionError: An argument is not of this form, or this pack registered the name before.
        """
        if namespace not in (*NAMESPACES, *UNNAMED):
            raise DefinitionError(
                f"{self!r}: layer({name!r}, ..., namespace={namespace!r}); expected one of "
                + ", ".join((*NAMESPACES, *UNNAMED))
            )
        if not (isinstance(name, str) and name.isidentifier() and not name.startswith("_")):
            raise DefinitionError(
                f"{self!r}: layer({name!r}, ...) can't be an attribute of oprack.{namespace}; expected an identifier "
                "without a leading underscore"
            )
        if not isinstance(target, str):
            raise DefinitionError(
                f"{self!r}: layer({name!r}, {target!r}); expected a string such as 'my_pack.layers.fc:fc', which is "
                "imported on first use"
            )
        key = f"{namespace}.{name}"
        known = [t for kind, k, t in self.contributions.targets if kind == "layer" and k == key]
        if known:
            listed = f"; leave it out: {manifests.FILENAME} lists it" if self._in_manifest(namespace, target) else ""
            raise DefinitionError(f"{self!r}: {key} is registered twice by this pack{listed}")
        self._target("layer", key, target)

    def place(self, kind: str, factory: str, place: str = "") -> None:
        """A sort of place.

        Args:
            kind: Its kind, by which users name it: `x.to("toy")`, `x.to("toy:1")`.
            factory: "module:name" of a function that opens the device context of a Place.
            place: "module:name" of the class derived from `oprack.tensor.Place`; without it the kind is no name.
        """
        self._target("place", kind, factory)
        if place:
            self._target("place class", kind, place)

    def library(self, name: str, target: str, attr: str = "") -> None:
        """A kernel library, and "module:name" of the object that speaks for it (see the hook oprack_libraries).

        The object may have `identity()`: a text that says what its passes depend on besides the pack's code, such as
        the version of what it wraps. Models that they rewrote are stored on disk under it.

        Args:
            attr: The attribute of ops that asks for it when true and declines it when false; it counts in runs that
                choose this library by attribute (`Executor(libraries_by_attr=...)`).
        """
        self._target("library", name, target)
        if attr:
            self.contributions.targets.append(("library attribute", name, attr))

    def observer(self, observer: Any) -> None:
        """An observer of runs: the object, or "module:name" of one."""
        self._target("observer", "", observer)

    def format(
        self, suffix: str, target: str, *, starts: str, holds_parameters: bool = False, writer: str = ""
    ) -> None:
        """A sort of program files, and "module:name" of the function that reads them (see the hook oprack_formats).

        Args:
            suffix: Of the files, as ".json"; directories and paths without a suffix are searched for it.
            target: The function.
            starts: The text with which such a file begins, after white space; by it bytes without a name are known.
            holds_parameters: The file holds its parameters, or names the files beside it that do. The function then
                gets the folder of the file, too (None for bytes without one), and returns an
                `oprack.io.inference_model.ReadModel`.
            writer: "module:name" of the function that writes such files, for `oprack convert`: of an InferenceModel,
                the scope of its parameters and a path; it returns the files, and remarks for the user.

        Raises:
            DefinitionError: The suffix or `starts` is none, or the suffix is brought twice.
        """
        named = isinstance(suffix, str) and suffix[:1] == "." and suffix[1:].isalnum()
        if not named or not isinstance(starts, str) or not starts:
            raise DefinitionError(
                f"{self!r}: format({suffix!r}, ..., starts={starts!r}); expected a suffix such as '.json', and the "
                "text with which these files begin"
            )
        if any(kind == "format" and json.loads(key)["suffix"] == suffix for kind, key, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: format {suffix!r} is registered twice by this pack")
        key = {"suffix": suffix, "starts": starts} | ({"holds_parameters": True} if holds_parameters else {})
        key |= {"writer": writer} if writer else {}
        self._target("format", json.dumps(key), target)

    def command(self, name: str, target: str, summary: str) -> None:
        """A subcommand of `oprack`.

        Args:
            name: What users type.
            target: "module:function" that configures its parser; it sets the default `run`: a function of the parsed
                arguments that returns the exit code.
            summary: One line of help.

        Raises:
            DefinitionError: The name can't be typed, or is brought twice.
        """
        if not (isinstance(name, str) and name.replace("-", "_").isidentifier() and name[0].isalpha()):
            raise DefinitionError(
                f"{self!r}: command({name!r}, ...) is no name of a command; expected letters, digits and '-'"
            )
        if not isinstance(target, str) or not isinstance(summary, str):
            raise DefinitionError(
                f"{self!r}: command({name!r}, {target!r}, {summary!r}); expected a string such as "
                "'my_pack.command:configure', which is imported when the command is called, and a line of help"
            )
        if any(kind == "command" and json.loads(k)["name"] == name for kind, k, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: command {name!r} is registered twice by this pack")
        self._target("command", json.dumps({"name": name, "summary": summary}), target)

    def variable(self, name: str, *, default: str, meaning: str) -> None:
        """An environment variable that the pack reads, for `oprack doctor` and the documents.

        Args:
            name: Its name, which begins with OPRACK_.
            default: What holds when it is not set, in words.
            meaning: What its values mean.

        Raises:
            DefinitionError: The name is another one, the core's or brought twice, or a text is missing.
        """
        if not all(isinstance(t, str) and t for t in (name, default, meaning)) or not name.startswith(PREFIX):
            raise DefinitionError(
                f"{self!r}: variable({name!r}, default={default!r}, meaning={meaning!r}); expected a name that begins "
                f"with {PREFIX}, and two texts"
            )
        known = {json.loads(key)["name"] for kind, key, _ in self.contributions.targets if kind == "variable"}
        if name in known:
            raise DefinitionError(f"{self!r}: variable {name!r} is registered twice by this pack")
        if any(v.name == name for v in CORE):
            raise DefinitionError(f"{self!r}: variable {name!r} is one of the core's; choose another name")
        key = json.dumps({"name": name, "default": default, "meaning": meaning})
        self.contributions.targets.append(("variable", key, name))

    def communicator(self, engine: str, target: str) -> None:
        """An engine for several ranks, and "module:name" of the function that opens its world (see the hook).

        Args:
            engine: What users give to `oprack.parallel.init`.
            target: A function without arguments that returns the Communicator of all ranks.
        """
        self._target("communicator", engine, target)

    def preparation(self, op_type: str, target: str) -> None:
        """A rewrite without which programs with ops of a type can't run (see the hook oprack_passes).

        Args:
            op_type: The op.
            target: "module:name" of a function that gets such a ProgramDesc and returns another one, or the same.
        """
        self._target("preparation", op_type, target)

    def _in_manifest(self, namespace: str, target: str) -> bool:
        module, _, name = target.partition(":")
        return any(name in m.layers.get(namespace, {}).get(module, ()) for m in self.contributions.manifests)

    def layers(self, module: str, *names: str, namespace: str = "layers") -> None:
        """Register several functions of one module under their own names; raises as `layer`."""
        for name in names:
            self.layer(name, f"{module}:{name}", namespace)

    def pass_(
        self,
        name: str,
        target: str,
        *,
        stage: str,
        place: str | None = None,
        library: str | None = None,
        after: Sequence[str] = (),
        before: Sequence[str] = (),
        reorders_sums: bool = False,
        inference_only: bool = True,
        precision: str = "",
        ops: Sequence[str] = (),
        optional: bool | str = False,
    ) -> None:
        """Register a pass, which rewrites graphs.

        Args:
            name: Name of the pass, by which users switch it off.
            target: "module:name" of a function (or fusion) of a Graph that returns how many rewrites it made.
            stage: When it runs. "fold" evaluates what is known before a run, such as constants and shapes;
                "canonicalize" turns different spellings of the same computation into one; "fuse" merges several ops
                into one; "lower" turns ops into attributes of others, or into calls of a library. Within a stage,
                passes for all places and libraries come before those for a particular one.
            place: The kind of place that it is for; None means all.
            library: The kernel library that it is for; None means all.
            after: Passes of the same stage that run before it, where they are installed.
            before: Passes of the same stage that run after it, where they are installed.
            reorders_sums: Whether it changes the order of float sums, or rounding.
            inference_only: Whether it treats parameters as constants.
            precision: The dtype that ops compute in after it, which users have to ask for; "" for their own.
            ops: With a precision, the op types that it is about, by which users may choose.
            optional: Whether it runs for those alone who ask for it by name (`Config.enable_pass`), as one that changes
                what somebody may read has to; a kernel library: where that one serves.

        Raises:
            DefinitionError: An argument has the wrong type, the stage is unknown, or this pack registered the name
                before.
        """
        if stage not in STAGES:
            known = ", ".join(map(repr, STAGES))
            raise DefinitionError(f"{self!r}: pass_({name!r}, ..., stage={stage!r}); expected one of {known}")
        if not isinstance(target, str):
            raise DefinitionError(
                f"{self!r}: pass_({name!r}, {target!r}); expected a string such as 'my_pack.passes.relu:fuse_relu', "
                "which is imported on first use"
            )
        if not isinstance(name, str) or isinstance(after, str) or isinstance(before, str):
            got = f"pass_({name!r}, ..., after={after!r}, before={before!r})"
            raise DefinitionError(f"{self!r}: {got}; expected a name, and lists of names")
        options = {
            "name": name,
            "stage": stage,
            "place": place,
            "library": library,
            "after": list(after),
            "before": list(before),
            "reorders_sums": reorders_sums,
            "inference_only": inference_only,
            "precision": precision,
            "ops": list(ops),
            "optional": optional,
        }
        if any(kind == "pass" and json.loads(k)["name"] == name for kind, k, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: pass {name!r} is registered twice by this pack")
        self._target("pass", json.dumps(options), target)  # as a string, which the cache across processes can hold

    def _target(self, kind: str, key: str, target: Any) -> None:
        if isinstance(target, str) and not all(target.partition(":")):
            raise DefinitionError(f"{self!r}: {kind} {target!r}; expected a string such as 'my_pack.module:name'")
        self.contributions.targets.append((kind, key, target))
