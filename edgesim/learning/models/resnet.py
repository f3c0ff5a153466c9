"""Residual networks of basic blocks (He et al., "Deep residual learning for image recognition", CVPR 2016).

Named ``resnet{10,18,34}-{gn,bn}`` with a stem for small images, as is usual on CIFAR (3x3, no max-pool), or with
``-imagenet`` behind it the paper's own (7x7 with stride 2, max-pool). ``gn`` is group normalisation in groups of 8,
``bn`` batch normalisation, whose running moments are merged like weights. ResNet-10 has one block per stage.
"""

from collections.abc import Callable
from functools import partial

from torch import nn

_BLOCKS = {10: [1, 1, 1, 1], 18: [2, 2, 2, 2], 34: [3, 4, 6, 3]}
_NORMS: dict[str, Callable[..., nn.Module]] = {"gn": partial(nn.GroupNorm, 8), "bn": nn.BatchNorm2d}


def _resnet(depth: int, norm: str, large_stem: bool, image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    from torchvision.models.resnet import BasicBlock, ResNet

    model: nn.Module = ResNet(BasicBlock, _BLOCKS[depth], class_count, norm_layer=_NORMS[norm])
    kernel, stride, padding = (7, 2, 3) if large_stem else (3, 1, 1)
    model.conv1 = nn.Conv2d(image_shape[0], 64, kernel, stride, padding, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    if not large_stem:
        model.maxpool = nn.Identity()
    return model


RESNETS = {
    f"resnet{depth}-{norm}{'-imagenet' if large_stem else ''}": partial(_resnet, depth, norm, large_stem)
    for depth in _BLOCKS
    for norm in _NORMS
    for large_stem in (False, True)
}
