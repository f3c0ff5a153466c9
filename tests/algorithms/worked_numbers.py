"""Algorithms with numbers worked out elsewhere, and the numbers of the net of eight weights, for several tests."""

KINDS = {
    "FedAvg": ("fedavg", {}),
    "FedAvg, uniform weights": ("fedavg", {"weights": "equal"}),
    "FedProx mu 1": ("fedprox", {"mu": 1.0}),
    "FedProx mu .5": ("fedprox", {"mu": 0.5}),
    "SCAFFOLD option I": ("scaffold", {"option": "I"}),
    "SCAFFOLD option II": ("scaffold", {"option": "II"}),
    "FedDyn alpha 1": ("feddyn", {"alpha": 1.0, "adaptive": False}),
    "FedDyn alpha .1": ("feddyn", {"alpha": 0.1, "adaptive": False}),
    "FedDyn alpha .1, adaptive": ("feddyn", {"alpha": 0.1, "adaptive": True}),
    "MOON mu 1, T .5": ("moon", {"mu": 1.0, "T": 0.5}),
    "MIFA": ("mifa", {}),
    "MIFA, lr .5, .25, .125": ("mifa", {}),
    "MIFA, waiting": ("mifa", {"wait": True}),
    "FedAvgM beta .9": ("fedavgm", {"beta": 0.9}),
    "FedAdam lr .1": ("fedadam", {"lr": 0.1}),
    "FedYogi lr .1": ("fedyogi", {"lr": 0.1}),
    "FedProto lambda 1, averaged": ("fedproto", {"average_weights": True}),
    "FedDF 3 Adam steps, lr .01": ("feddf", {"steps": 3, "lr": 0.01}),
    # On the proxy's two images, each twice: Omega, divided by the number of images, is half as large.
    "FedCL coe 10": ("fedcl", {"coe": 20.0}),
    "CFeD weight .1, T 2": ("cfed", {"learners": 0.5}),
    "CFeD, 2 server passes": ("cfed", {"learners": 0.5, "server_passes": 2}),
    "FLwF alpha 1, T 2": ("flwf", {"alpha": 1.0, "T": 2.0}),
    "AFL lambda .5": ("afl", {"sensitivity": 0.5}),
    "AFL lambda 1, median": ("afl", {"sensitivity": 1.0, "delta_norm": "median"}),
    "FedStg, always aggregated": ("fedstg", {}),
    "FPL tau .5 (mean square)": ("fpl", {"tau": 0.5}),
    "FPL tau .5 (sum of squares)": ("fpl", {"tau": 0.5, "upcr": "sum"}),
    "KPFL .02, -.18, no distillation": ("fedavg", {}),
}
KPFL = {"KPFL .02, -.18, no distillation": {"keep": "first", "age_active": 0.02, "age_idle": -0.18}}
"""KPFL's options where it stands around the algorithm of the line."""

EIGHT_WEIGHTS = """
FedAvg                   5.5388701066 6.0106982214 5.7176515693  .7015496410 -.4842546460 .2462592827 .4779178597 .7292711923 -.1963521591  .0e+00
FedAvg, uniform weights  5.6982402022 6.0328530165 5.8639312688  .6847909187 -.5370059238 .2240134577 .5533746355 .7735241348 -.2573307761  1.4e-01
FedProx mu .5            5.5341020247 5.9437494701 5.6938426317  .6772278776 -.4660592418 .2397349321 .4684026471 .7141299322 -.1920888587  3.9e-02
SCAFFOLD option I        5.6982402022 5.8467054444 5.9811995047  .6881674477 -.5165026218 .2822164918 .5069979134 .7250723862 -.2507704721  9.7e-02
SCAFFOLD option II       5.6982402022 5.8407991046 5.9756662614  .6890040307 -.5186924610 .2818484930 .5068913223 .7246543425 -.2501225347  9.6e-02
FedDyn alpha .1          5.8222837334 6.4886177440 6.6024744214  .8651062062 -.7183790583 .3073106295 .7004895915 .8917576632 -.4168757017  5.3e-01
FedDyn alpha .1, adaptive  5.8175869712 6.4743456591 6.5720378790  .8596985851 -.6972874261 .3140736199 .6761893680 .8707807914 -.4007486987  4.9e-01
MOON mu 1, T .5          5.5388701066 5.7774745452 5.3242475060  .5763762125 -.5329897212 -.0424331828 .6375457932 .6987146064 -.1941981621  3.6e-01
MIFA                     5.6321601348 5.7505471271 5.8722345343  .6531472130 -.4974730869 .2683312599 .4845969094 .7010540453 -.2363800842  8.9e-02
MIFA, lr .5, .25, .125   5.6321601348 5.6902851726 5.7181136478  .5725872540 -.3964662782 .2561553963 .4250533685 .6273822122 -.1622718558  2.2e-01
MIFA, waiting            5.5000000000 5.5907224382 5.6912494215  .6223107013 -.4788791890 .2291451338 .4812864559 .7043811689 -.2114391055  9.1e-02
FedAvgM beta .9          5.5388701066 6.0456813174 6.1933250504  .8278280382 -.6309972115 .3814552364 .4903331257 .7404873842 -.3013839957  2.8e-01
FedAdam lr .1            5.6786491211 6.2986324859 6.6020694168  .8030775358 -.6374850203 .3882990901 .5543881196 .7037470709 -.3495031575  3.3e-01
FedYogi lr .1            5.6783665640 6.2974526604 6.6010170434  .8024139816 -.6366206180 .3881719719 .5541595724 .7037089880 -.3490540342  3.3e-01
FPL tau .5 (mean square)  5.5388701066 6.3322258930 5.9210074270  .9613814596 -.8209520386 .2200804963 .6788616200 .6985299369 -.1114509747  4.9e-01
FPL tau .5 (sum of squares)  5.5388701066 6.3284925456 8.0718634712  1.4201090592 -1.5156190708 .4517943187 1.2678554132 .6428370189 -.0709309913  1.5e+00
FLwF alpha 1, T 2  5.5388701066 5.9989792950 5.7099608163  .7008245278 -.4836436328 .2450300419 .4775547289 .7296037637 -.1951610200  2.4e-03
FedProto lambda 1, averaged  5.5388701066 6.0312370988 4.6081514444  .4886992534 -.2927836757 .0341669999 .2878790178 .6860189329 -.2115201688  4.1e-01
FedDF 3 Adam steps, lr .01  5.5562910041 6.0141475458 5.7951841831  .6856203712 -.5111191453 .2487969481 .5070303388 .7562792676 -.2349242191  7.9e-02
CFeD weight .1, T 2  5.6982402022 6.0783757408 5.9011847758  .5814202364 -.3707168454 .3164027021 .3868399537 .5742827412 -.1565978959  3.0e-01
CFeD, 2 server passes  5.6980475891 6.0782363468 5.9009642502  .5815149393 -.3707713264 .3163438601 .3869335382 .5744572075 -.1565703228  3.0e-01
FedCL coe 10  5.5314671698 5.8881445639 5.6909491257  .6597874544 -.4540180123 .2393922060 .4607676229 .6955168192 -.1844921124  7.5e-02
KPFL .02, -.18, no distillation  5.5388701066 5.6059288003 5.6313377219  .6654622286 -.4385486583 .2465936987 .4326051342 .6852268987 -.1716124870  1.0e-01
AFL lambda .5         5.5317162898 6.0097411594 5.7123523148  .7019116840 -.4821752545 .2473895666 .4748888965 .7272244060 -.1937578329  6.1e-03
AFL lambda 1, median  5.5085521726 5.9982674032 5.6913418168  .7042966876 -.4783400425 .2483923588 .4682037925 .7244857516 -.1873522355  1.9e-02
FedStg, always aggregated  5.4933357935 5.9849549007 5.6740852677  .7068421410 -.4775438833 .2472018342 .4656626453 .7252344623 -.1842718671  2.3e-02
"""  # noqa: E501

OF_CFED = {"seed": 4, "shards": 4}
"""For CFeD's lines: device 2 reviews in rounds 2 and 3, half of the devices of each, with a seed of these lots, and the
public set is so many times the three images, one time for each device and the server. The first task is round 1."""

FEDMD = {"public_share": 0.5, "public_subset": "fixed", "public_epochs": 0, "own_epochs": 0}
"""FedMD's options: three public images in every round, as the devices have seven samples, and nothing before."""
CONSENSUS = [
    [[0.4271997861, -0.1714747409], [-0.0443921701, -0.1473464738], [-0.3222822639, 0.3102955483]],
    [[0.5565713414, -0.2291527293], [0.2470171494, -0.3496248726], [-0.6867194577, 0.5348822425]],
    [[0.8054406485, -0.4932905882], [0.0686323327, -0.2062117369], [-0.7596245944, 0.5943161436]],
]
"""After rounds 1, 2, 3, a row for each public image."""
FEDMD_SUMS = [4.9713932887, 6.7698044728, 5.8745438150]
"""Check sums of the devices' models after round 3."""
