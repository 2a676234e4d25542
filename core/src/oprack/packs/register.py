"""The `register` object that hooks receive; it checks each registration at once: errors show the line of the pack."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError, ManifestError
from oprack.packs import manifest as manifests
from oprack.packs.contributions import file_state
from oprack.packs.register_plugin import PluginRegister
from oprack.packs.resolve import import_module, package_directory

if TYPE_CHECKING:
    from oprack.op import OpDef, OpFacets, OpVersion


NAMESPACES = (
    *("layers", "functional", "optimizer", "initializer", "metrics", "nets", "nn", "amp", "quantization", "array_api"),
    "sparse",
    "fuzz",
    "fuzz_lives",
)
"""Namespaces that packs extend through the hook oprack_layers. Each is a module `oprack.<namespace>`, but for `fuzz`
and `fuzz_lives`: the blocks of which `oprack.testing.fuzz` builds nets, and the parts of nets that live there."""

STAGES = ("fold", "canonicalize", "fuse", "lower")
"""When a pass runs; see `Register.pass_`."""


class Register(PluginRegister):
    """Registers what one pack brings. All methods raise on bad input, with the pack's line in the traceback.

    Args:
        pack: The pack.
        owner: Its distribution.
    """

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

        Args:
            definition: The class.

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

        Args:
            function: The function.

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

        Args:
            name: The module's full name.

        Raises:
            DefinitionError: The module declares no kernel.
        """
        from oprack.kernel import kernel_specs

        specs = list(kernel_specs(import_module(name, repr(self))))
        if not specs:
            raise DefinitionError(f"{self!r}: module {name!r} has no function decorated with @kernel")
        self.contributions.kernels += specs

    def role(self, role: str, op_type: str) -> None:
        """Assign an op to a role of `oprack.op.vocabulary`; see the hook oprack_vocabulary.

        Args:
            role: Name of the role.
            op_type: The op; it must have the signature of the role.

        Raises:
            DefinitionError: The role is unknown, or this pack assigned an op to it before.
        """
        from oprack.op.vocabulary import find_role

        try:
            find_role(role)
        except DefinitionError as e:
            raise DefinitionError(f"{self!r}: {e}") from None
        if not isinstance(op_type, str) or not op_type:
            raise DefinitionError(f"{self!r}: role({role!r}, {op_type!r}); expected an op type")
        if any(kind == "role" and key == role for kind, key, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: role {role!r} is given twice by this pack")
        self.contributions.targets.append(("role", role, op_type))

    def op_version(self, version: OpVersion) -> None:
        """Register the version history of an op whose definition has none.

        Args:
            version: The history.

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
            namespace: One of NAMESPACES.

        Raises:
            DefinitionError: An argument is not of this form, or this pack registered the name before.
        """
        if namespace not in NAMESPACES:
            raise DefinitionError(
                f"{self!r}: layer({name!r}, ..., namespace={namespace!r}); expected one of {', '.join(NAMESPACES)}"
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
        }
        if any(kind == "pass" and json.loads(k)["name"] == name for kind, k, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: pass {name!r} is registered twice by this pack")
        self._target("pass", json.dumps(options), target)  # as a string, which the cache across processes can hold
