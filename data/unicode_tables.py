"""What tokenization does to each character, frozen.

For each code point the tables hold what `data/tokenization.py` makes of it.
They were computed by `compute` from the Unicode data of `UNICODE_VERSION`
and are kept as text below, so that a graph made under another Python gives
the same pieces. Only runs are kept: 4,220 of them are the whole of Unicode.

One int32 holds one code point:

    bits  0-2   kind: what happens to the character
    bit   3     ignorable: skipped in the search for the end of a word
    bit   4     cased: a letter of two cases
    bits  5-12  class: how far combining marks move to the front
    bits 13-31  delta: distance to the one character that takes its place
"""

import base64
import functools
import itertools
import unicodedata
import zlib

import numpy as np

from data import tokenization

UNICODE_VERSION = "14.0.0"

(
    LETTER,  # part of a word
    ALONE,  # punctuation or an ideograph: a word of its own
    SPACE,
    # The kinds from here on need more than a look at one character.
    CONTROL,  # vanishes before anything else happens
    ACCENT,  # vanishes after the marks around it are in order
    EXPANDS,  # becomes two or three; code + delta is its number
    MARK,  # stays, but changes place with its neighbours
    SIGMA,  # small sigma, of which there are two
) = range(8)

CODE_POINTS = 0x110000
PAGE = 256  # code points

_CAPITAL_SIGMA = "Σ"

KIND = 7  # bits
IGNORABLE = 8
CASED = 16
CLASS_SHIFT, CLASS = 5, 255
DELTA_SHIFT = 13

_HANGUL = range(0xAC00, 0xD7A4)


@functools.cache
def entries(do_lower_case: bool) -> np.ndarray:
    """The frozen entries of all code points.

    Args:
        do_lower_case: whether text is lower-cased and accents are stripped.

    Returns:
        int32 [0x110000], not to be written to.
    """
    packed = zlib.decompress(base64.b85decode(_RUNS[do_lower_case]))
    lengths, values = np.frombuffer(packed, "<i4").reshape(2, -1)
    table = np.repeat(values, lengths).astype(np.int32)
    table.setflags(write=False)
    return table


def pages(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Folds a table: most of its pages of 256 code points are the same.

    Args:
        table: int32 [0x110000].

    Returns:
        int32 [0x1100], the first place of each page in the second, and
        int32 [...], all different pages one after the other.
    """
    different, numbers = np.unique(
        table.reshape(-1, PAGE), axis=0, return_inverse=True
    )
    return numbers.ravel().astype(np.int32) * PAGE, different.ravel()


def expansions() -> list[str]:
    """What characters of the kind `EXPANDS` become, in their order."""
    table = dict(_EXPANSIONS)
    for code in _HANGUL:
        # The Unicode standard, 3.12: consonant, vowel, final consonant.
        front, last = divmod(code - _HANGUL.start, 28)
        jamo = chr(0x1100 + front // 21) + chr(0x1161 + front % 21)
        table[chr(code)] = jamo + (chr(0x11A7 + last) if last else "")
    return [table[character] for character in sorted(table)]


def compute(
    do_lower_case: bool, stop: int = CODE_POINTS
) -> tuple[np.ndarray, dict[str, str]]:
    """Makes the tables from `data/tokenization.py`, one character at a time.

    Args:
        do_lower_case: whether text is lower-cased and accents are stripped.
        stop: the first code point that is left out.

    Returns:
        the entries, int32 [stop], and character -> what it becomes, for
        those of the kind `EXPANDS`, in order.
    """
    tokenizer = tokenization.BasicTokenizer(do_lower_case)
    table = np.zeros(stop, np.int32)
    expanding: dict[str, str] = {}
    for code in range(stop):
        if 0xD800 <= code < 0xE000:  # surrogates are not text
            continue
        character = chr(code)
        kind, order, letters = _fate(character, tokenizer)
        delta = 0
        if kind == EXPANDS:
            delta = len(expanding) - code
            expanding[character] = letters
        elif letters:
            delta = ord(letters) - code
        table[code] = delta << DELTA_SHIFT | order << CLASS_SHIFT | kind
        if do_lower_case:
            table[code] |= _case(character, kind)
    return table, expanding


def freeze(table: np.ndarray) -> str:
    """The text from which `entries` makes a table."""
    runs = [(len(list(run)), v) for v, run in itertools.groupby(table)]
    packed = np.array(runs, "<i4").T.tobytes()
    return base64.b85encode(zlib.compress(packed, 9)).decode()


def _fate(
    character: str, tokenizer: tokenization.BasicTokenizer
) -> tuple[int, int, str]:
    """Kind, combining class and what stays of a character."""
    clean = tokenizer.clean(character)
    if not clean:
        return CONTROL, 1, ""  # any class but 0: marks pass it
    if not clean.split():
        return SPACE, 0, ""
    if not tokenizer.do_lower_case:
        parts = letters = character
    else:
        parts = unicodedata.normalize("NFD", character.lower())
        letters = "".join(c for c in parts if unicodedata.category(c) != "Mn")
    if not letters:
        # One part of class 0 keeps marks from passing the whole.
        return ACCENT, min(map(unicodedata.combining, parts)), ""
    if len(letters) > 1:
        return EXPANDS, 0, letters
    if len(tokenizer.tokenize(f"a{character}a")) > 1:
        return ALONE, 0, letters
    if tokenizer.do_lower_case and character == _CAPITAL_SIGMA:
        return SIGMA, 0, letters
    if tokenizer.do_lower_case and unicodedata.combining(letters):
        return MARK, unicodedata.combining(letters), letters
    return LETTER, 0, letters


def _case(character: str, kind: int) -> int:
    """The bits `IGNORABLE` and `CASED`, read off `str.lower`.

    A capital sigma becomes the final one after a cased letter; ignorable
    characters may stand between the two.
    """
    if kind == CONTROL:  # is gone before anybody looks
        return IGNORABLE
    if f"{character}{_CAPITAL_SIGMA}".lower().endswith("ς"):
        return CASED
    skipped = f"a{character}{_CAPITAL_SIGMA}".lower().endswith("ς")
    return IGNORABLE if skipped else 0


# Characters of the kind `EXPANDS` that are not Hangul, and what they become.
_EXPANSIONS = {
    "\u09cb": "\u09c7\u09be",
    "\u09cc": "\u09c7\u09d7",
    "\u0b4b": "\u0b47\u0b3e",
    "\u0b4c": "\u0b47\u0b57",
    "\u0b94": "\u0b92\u0bd7",
    "\u0bca": "\u0bc6\u0bbe",
    "\u0bcb": "\u0bc7\u0bbe",
    "\u0bcc": "\u0bc6\u0bd7",
    "\u0ccb": "\u0cc2\u0cd5",
    "\u0d4a": "\u0d46\u0d3e",
    "\u0d4b": "\u0d47\u0d3e",
    "\u0d4c": "\u0d46\u0d57",
    "\u0ddc": "\u0dd9\u0dcf",
    "\u0ddd": "\u0dd9\u0dcf",
    "\u0dde": "\u0dd9\u0ddf",
    "\u1b06": "\u1b05\u1b35",
    "\u1b08": "\u1b07\u1b35",
    "\u1b0a": "\u1b09\u1b35",
    "\u1b0c": "\u1b0b\u1b35",
    "\u1b0e": "\u1b0d\u1b35",
    "\u1b12": "\u1b11\u1b35",
    "\u1b40": "\u1b3e\u1b35",
    "\u1b41": "\u1b3f\u1b35",
    "\U0001134b": "\U00011347\U0001133e",
    "\U0001134c": "\U00011347\U00011357",
    "\U000114bc": "\U000114b9\U000114b0",
    "\U000114be": "\U000114b9\U000114bd",
    "\U000115ba": "\U000115b8\U000115af",
    "\U000115bb": "\U000115b9\U000115af",
    "\U00011938": "\U00011935\U00011930",
    "\U0001d15e": "\U0001d157\U0001d165",
    "\U0001d15f": "\U0001d158\U0001d165",
    "\U0001d160": "\U0001d158\U0001d165\U0001d16e",
    "\U0001d161": "\U0001d158\U0001d165\U0001d16f",
    "\U0001d162": "\U0001d158\U0001d165\U0001d170",
    "\U0001d163": "\U0001d158\U0001d165\U0001d171",
    "\U0001d164": "\U0001d158\U0001d165\U0001d172",
    "\U0001d1bb": "\U0001d1b9\U0001d165",
    "\U0001d1bc": "\U0001d1ba\U0001d165",
    "\U0001d1bd": "\U0001d1b9\U0001d165\U0001d16e",
    "\U0001d1be": "\U0001d1ba\U0001d165\U0001d16e",
    "\U0001d1bf": "\U0001d1b9\U0001d165\U0001d16f",
    "\U0001d1c0": "\U0001d1ba\U0001d165\U0001d16f",
}

# Runs of equal entries: the lengths, then the entries; int32, zlib, base 85.
_RUNS = {
    False: (
        "c-q~SJ8M)y6vyw(y&K)TYg{GxSfhzv;){S0Ng6Renm~v~A_Nr+Ux*?hi#7&UQ9&!gVha"
        "l&sD%nz_yJVxER|H2TIDnNKs}TB4Lcby39{;Harp0f&bj|NXEq;2kw%orQgE?IDzZSNE"
        "YbodB5R2;k^^JUW@I5X<G}w)*Zl@3m94#r_-#QQ9bh-V3-lBRF^jxh;~S*sQ_;+G*NL="
        "xu~WqN@$DVhw^DaM`W5sP{RVgeoB*#Yi$(Nt^uy>Wb)ImZ>!XW)2ha!MI3a$V?|zE^q!"
        "{ypx6sGncL{o#ynTG%0Q%kFZo1&q*?N_Ydr$mjW<hcOGxT=+7wK_3{q|$u1?L5Kf3f{-"
        "Vpb62W~dExcUTN&EXAj}JA)J2p1T@-M`C@$=pE$Mq`)%4o%Gp>{|otUek%OFDYAv%F4p"
        "w(P}Mn0yn8ghQqcGDXy%<KlJt6|<s=%3qHhT^t8Bd!-gg>257$*?&l=^djlsUT8Fl?0g"
        "QpVqD!pDpclJ+?_r2E8udV$ZJs7?+V*Fi6g8i%oJLhIZ1su6uEeHLt3U*#GTeTog!_ys"
        "Rya)R|?qmx48|-d}OUmxZdh`nQ_kf4!vlLtZV`i=!`%B`+ytgLtX8Ig@5B_2FB$#K%&q"
        "4S(i|v83=cQhKBd5X7BFjb2kl#+tA^cade|2vhJl#e=!VVtr_{_nZ!Ofg|jr(tb&q`wb"
        ")k1x@43E8i#8YcG_1xP!67z;p=fzN+v$t(Fu9&wuldZPaeHpe7kL<2J-yrX;{2_FT<72"
        "Kcox4WlsCkFJ>*<-)%%+bfF8T@16_d@9+epmj=yASz**wqrQ{UAn)W3n(M)j3>Z{BS4q"
        "??d`{SVE6YJy#CMBQfEz3eZ%b^pUX|LR?ac|QQ)jz%y"
    ),
    True: (
        "c-rlp378#4oxtn=j>*epOdf}j3upr2%7EbxD4UMlI=g^`g(bLO?*fVlD=G%$2n`708W1"
        "F~hzgAYxlba3$8NJ+VaXzhi+~C}Nys&mNirEwlW}H${a*J>y_)VfGX{`j@_oPWU+2H7{"
        "&jR!y_yVGN@XGhc8p|=Awz1lu#u3};v@>o!Jb-J-bj;1t`BLlebm(#GH;`<_j1{p_o&X"
        "lrTzO;m(06dW~Lu``&+l{yIkLlQFiV<)aM^0-mSS*^A41Md?ZJ~sqoQ+??FB)BNxdbQC"
        "R3N7-KA})yEujnJRPWBmJ;*wx8dvBzEY7U1LV{aZYF7;r`F}!9Lk4bxg9=;7IObxcj5y"
        "y+r;!_HBE=uTcZGeEZl(vu8Y)_m9GAjQN!{)~A~7*mrDCKaSJfL!x?Qjk;uv?|`{(WO`"
        "XwYx`LLjApltmN%#QPciZp4ga8&Z$~EO`xKtXh9=Z!_mpp0Hf8VCTid2Y_C4CDqxsE?{"
        "lm5T4>r=oYv3^LoS4zZTWkk?+{NGO{WTqVqwSf5I%QM76MBDTqp`2sKa=uJi}w^s^B`l"
        "CnMvrsj4_^uMe=A(f6kasLsN8(NC+FBQvaN>N6IAh-Jk>;?vU`^u8qQu(sb+NKDN!yk-"
        "ttG2l`&-=mb0E68cE5o4ME9-PkXU)5?nV9AdQdNMk(YwYY4;JRB00wUaTPGlsrQ!d@tC"
        "ZHa9&TC-(F>wmpYaoXJ?|4CXMvsLzb@m~28M&D$#b|u+8?%y*~@?|s|=ws^$Z9MC1>!>"
        "PsI(fsUxfEHK&@ZO0Trc01c>Kie-dihouy$q$(|ua|w&fDm0(}m}-<^VHt8BEk=d`m!#"
        "#qyaY2o{%jGb|YJwKZ%%fZpOJ5^gN^flw+Oy#^78O8lWq-Sr#HlvOH9i`2$P};^^EToK"
        "uY{GYSOk^W{d>$IfNm05nk$<YT*6X^>Gf-^n7gE;$csxp#aTD(gYBYDO!_xB9Xk(|Q%D"
        "S$vwFet>rmuG|)$T?!3Hm-7)w9-U>tMqkma+EhIww>)qh&SQg!$_YJLzla1kFB!qk4?f"
        "bQU7ADQ9=R{yC%Hv)ULB>o8H9SK-(hYmCpdwRh}aagWwpA8gM(-P^6NzioM^?>yg$diS"
        "=*_cwiJ;LJI|d*IIh!(8uyIrr|i|NZhCV|<riFwV{yV^1HSlk~g#I%6MIn{cL!)9da-w"
        "eLbs+k51y+!^WdI~Zpd^UR;s_LBYmO(A3G&1rWbdilkOtg%-V<9Gbsjq(mlsCy`PP53R"
        "p+HZ~K9er(;y-&tCznF|M${26t$!Tv3c8kKlE#<I~X_@jJ$|+IY9#MU6mvTKPMtQ9${<"
        "Wx_y`)^$__uLfXN)t&z+U3Lx6an|@;h4Im>)@J_eok<d`Ia-W9(zv88f~g`;jEyC)R3d"
        "YO9Q=e8PEg=-+5vuh|ZryBK#$*@W-G`?XD(gmqPDpg*E~zoI_Vy+*Idb*~Y1+SnNX0hn"
        "Xie*CWTPWE#qx<AWk_jhBqvrQjX3UAYx_%PZy-;cDz6YOB#dzo(`Mi~3#6Qj6>g!|NDv"
        "^T6t_!h;#5$Cl%@UF(1JVg7pWsTpXl74&oi1EG3820#N%D%A97<a=W{Y9f5hgP{CHs4~"
        "5(&Fn9>Z+$bD!SXuYri$+qV;5KFMH$AzW0;)oIMBjTLTO*!1nJ`GjEfwtorcXg$>+0es"
        "JEe4T`?qN$25e=Z!&Cesit%9w_A8=+5m*DW~&|ySMm#+#u~8OVT-`uFBi5+f&{!Ny>Yp"
        "+JxV5)BYwW$rf?`1EajhYIleg`$8%Ex5nqzNZt|IYH#h%PNKVy{UV$wJ{QTa8hf{4DZl"
        "4di+^0Y&*}$gZ##Yvxu1^Y9+7;^uwPRD?w9hnNX1BZeE)O4@osrgw0{ldKSlXgMtjouo"
        ";iLeaJ_W5@2-Tq5B*)xekt!?E{ohpXm>w@jQdmb4t;paozb9#_X`=L{k7Wrs`yPw-nic"
        "!5~crG!kyM(3Gaw<Ro31i#+W{(%KOcD3|tt=!?k=h#+|tS{>pp<6`#2VY4`Sz8*d;o32"
        "&Ne6Y4d&mwTkNZ+eqvo1{DAUA4F~65eO%HX9v{y}#?@z2~_JzklfCKaAUC^kd9<(K#^W"
        "td!r|_1{!(Hrkj=c+*;IjDP)IW5IZ5829Hv34gz#zeT-SD&P8;XY&KJH#ECM?m-FPhby"
        "X_o3knXd{W9i=M*u18;R}!FUghbbk&e@_%XS1dk;UN?02;}7{Arc8*^)0rn_I_v9mOao"
        "2b26vs30^7}hbdTc2)=d+K_wOXuuZ?t}QgVAo9dcQ9-8ML`?CdF>5aT&K{!*G74MF5Pb"
        "wPfQqJnS`-am-5}8WQ?bR5kJ}(uX$rE#pxzX<=fm5#`os0^@sI2EK`2-my6cig0W`DHX"
        "EkZFLa-p>t3tF-$)y^`tFc2o=f{D>E5$k5{<uOqVj`$Ieh=<`!dFuJ3B_Yo*z`+W5j<G"
        "9Lq0f%4LKd5<FNQi;MQ9uKN$XM;JKU4%lFzF9#T~-2emQ@SST@V}3~2xx$I|&f!_6*pc"
        "aaw{A)?{$?bUN^=+49hqs0+TSK+v^?>?PHAaWlul`J1ucGXN}f{LR$FILL9nH>=z|9?P"
        "^XfN{SMd({xF>xW^L(IQM=6WF5RWFH{ph0BV~gJE`)Ke=6AqO@Q3NlFl%FH+)gvROLxi"
        "Nj2nU`$_5WyO*&wM1qy=oqyrDENWX*I4*j4YSVtQ0zy$|vO<JHJSW7zazy)V*w@wSUf?"
        "y44zylW?u)$hWZbO{jUrictSC_*bqzzW+hu{tLyrJoj>rR**hJ%7&73o%0>UQwkV1?lj"
        "tR&6KZe5|<0~Z{y!#Ge7tRO9T;DQ4-SfC(i?AGJqcEJHV3<m{4fDZ7$1qbW|X@P>^b<%"
        "?e?(0!sk5oO{?vLnpdzw2KOnUr|5g&|*>=EkH^o4$JWTX=ryh8b}^t81-s?u%7`7cvvu"
        "txQ)tJ58(wD6MK*7c;g-CtuTuwO(!_~3#48~mUk(867CUhGa^s>Ad6!2<PscVBeXH42Z"
        "@d0`sO@9vBauz%HAQ8(u~{Lhuw9`$GHfZGfG%W;GK2g(4OzO+IJQxH5${Ik9LolwW}?r"
        "_~5B&7#C41cz}ZT2&`pDC|TdcSnF;c4=K2W}{rA;AF~EKm>-=R<(oUl!T*_<Z*`3)dO^"
        "y6$l9dj-Z-p=Y@%GG6<_^?vzij>@|!HGNcB){QE=8%9*h@Nc6+SxUcqS;qcSUR4<u>kQ"
        "rXxEpq>lwr78uL5gb!Ki1~H_H1DY&Ntjtl->_{qlUb9;E$w<_84%a@(AmvJ7hIn?dNym"
        "%cNqbWfBke{%vME{pv_{kW~r4_+pk=YOGZIw_+An}-s@bfq}lerIQ2Y`xvm{ZpqouZvc"
        "vw!VhnJlg4ks)a~~>r^O1yI`kMno@k&_N?mqz6Mb{ymsu{UUsWU#&P~O+7Dj)JKN^iuK"
        "gIt;W#S18~yONlHoY@TIidW&VJ`L_by#JqcGF%`d+4Md`0^i7s9<vywB;;XVG3sPpj{H"
        "y8Pz8=!4mB<u$gZYrQh}>`GOxpP^hns%Kb5+~~5q0R<PqbeIRrp&9Bp1k^(VTm;i$9xR"
        "XkX1h6(by?D7%kH?0&>iMeT3z)sgBY?@Cv-GJU9R%~NGSdDqJxi{D_{7#xr(#LMdX_f^"
        "RktC>Y*W*Y=cnhb+{-Omlai<u^3Cep5ruktSkQZnf;&=&P&sCJ@ap`jIO8?>t&wd;(F="
        "zHl;GgmF_PX?J?_7Fv7;E>h-VayM#1xyY&9hWgOqED(z4&J?mGB^ZwYWtUq-sFXYeY*x"
        "IEh>CBs^Kkq%&5tmWYRr<HJqE4cE_D@&+?PR^WjP-Zrjq6@=|GCplFTK>+v`w8c59|7v"
        "KW;-lxU-{Y9sksslqaul>8S8K-|UgMw{mrxOs{3^45{7@Nzxb1?~>b(Q*?Ibz0Y?f**w"
        "i=`QXfszNYPAH+4csn%$f0y7L#Ju!}y@b9|clmJcoGt25?l!?2$AFz2=@>qcp7Z_2#uD"
        "a&KOo{v&Pu`H)YGAzHL*j<k}zO<j0<att;vi_L$s<2%@$9J0SvP0LmH(a5TWcOO3?;)i"
        "t-_{+Ak*}E22bq-ccr5OtwPhdae_LWb=38`Sto3!#nr@DtE}M+5Ue5BA@17pkTYsd@n>"
        "yqBs#4mbe>)1QZ{N$jbzggVPDV2D%F>Ud7fHJ;E7lUubam1CQBHezdpW$LGwwG@`A$~r"
        "$1txxmz#S@o4S^$p5Ja!`kwNpj#!E@e(P1T-Rcwe5xOjD^Pyne4Ve1E^ZW9V-FE|BXZ<"
        "KmgLdZE^A@d!_M(E|)9pncJaEAQ8!S)|e2RGRzy$|vus}g@GV$Pn3l7*|fr8*9;=uzK9"
        "I(Lx1;L5Lg9k1+U~AF>1;GiV0}otqzy=Ex1jiE(9=PCu4HhT}jw2pCaKQl^EKm>}OFVe"
        "sf&(^Knp6;cl62sK3l7*|fr4NX@!)|A4%lFUg1{yoJaEAQ8!S)|Oe7vWaKQl^EKm^q9r"
        "56S3l7*|fr8)|;=uzK9I(Lx1;HnX2M_F{ksl`v6#mlv#yMqK>Yq?fKtgaN`M?7g9I(Lx"
        "1;G)-g9k1+V1oq;g2Rai4_t7-PVifxAUKTl;DHMc*kFNz;85ZZ?deZT=Ybo>gB|7r1;H"
        "W2g9k1+V1oq;f`f?%58Q*(!yT~0cu)|GCmuX-$M^I*V1orJlxgSJJBf$j4)TKsE;wL=1"
        "qy;0#DfPeIAACEEl@K`>u}M#oj7p71`E{f<+$Lx=mQU2aKHu&6a=>s4<5MSfDINXO$N7"
        ";4m@zd0UIn(5PXMt@W2HJ?C+$8m+N*5ao~Xq4%oLuZK@0_TA(1fnLIa_)3}keBdH?kPb"
        "WR;@D~Hzq2B`+9I(T9P!N2Zc<{gl2W+rzA|4#D6J!8>=>Hae@WB06xqRzJ@<MO}X}|*)"
        "9I(Lx1;ICn2M=6u!2U*hxCJVVzn*yTzy$|vus~hkyZ&DFxWq$n4e{VzQ*M`o+Xf311k;"
        "EIZ(4gHiZ9(E2ct`2MHifDkxg)`FzwZZU)?R8tJ@3g5egQlj?SV*n1bLcbYB&fi`xbZ6"
        "a-ficV#KAVCDFxLU{M;5$8gj-XooRWmozxzXNvYzoNb1>`M8&why+3Mq}~{(q2)DE0>M"
        "ihTw9-A^18Hysx(xf?e7R+TL|s%J0pC6MmC6_qiGE9>M%QSq!%xSK1R8QoqBfH})I)UP"
        "h_P-!1wioyqMLerxTvqQ82Zp04O-`=K|J`1_jjJ33X+Q9e)k?Pcjif2`s3^E~Dle!tQ$"
        "-p{vH#H;pB@gLnL!K2%h+fkV(mUd@ycv$bSJU8;YTWH6dk>2t>MOVKE-<R_Gl}$Yp^(I"
        "RXF{3-t%J0o%TZ{Hy9YyQ$t<`@A`Nh_v<8LimNc$IwY0JL@JhJrz`&+>K`7YcD(|`Xn$"
        "4lBA)X$FkU7>ld)X(XXutw>!A-Y!&&oJS6xMp<aI#x)z!}yy>|F3l0Z<X&|B>L?%UQa#"
        "%Z3@rvaetZZl7#n8lHh(n&#U<RDaKrQx9d_c?iF-953Gazw`KA-@V{F6rK9V2;3-YTcW"
        "bP>XEqhBe{3px5a15|rL)dwn~MI~O+^Q(F5Uie)Yi_T7wUerrP}w#{Ej50O?z|FmwV27"
        "<1SCX15CQJO}qD-KB{MU+C5>~-J*WiTu3OZ(9e5lNx4_n=Xu(lqW;^W^rAPmp?UwP68g"
        "c^5$DYZ*R3yyf1y>J|J)$z(N^&;heun)dtki;Q<}v4b(^@L1~*GEe2ci>X%cr(vsk-r5"
        "NGa2@t@ly!2_Gc`oGQMw{I4AW2^YPwTSPwi1Viw3C`Lm-g(5=ZjoSQn*{ULi}mRy2|hs"
        "?dyxM=^4&}L4d{HOMeI8^iz>8=d)NlCcftMoX0ewxi~mdNcT<a4M{g9ntyQdN(X#`34y"
        "Qg}A?;z5IclT04^!SNo5Z>sz4w#<KU&59uPx%AKpXCA6KnlOaSEHnnGUCI7H<Oen%O4a"
        "A+&o-lUR>5i+e8l*K87ZFVb$Jyf4wFpP*wi<^5}D2kL$sb$O&k)K#?q2b;vccZ;a;O`^"
        "!B!g>vD5`Q>xlw+NaU4Bgd<7n4G8^qt4yoX`)@2?kiTC><M(Z1ub#kJJ`2=ca4Chc>U5"
        "k6zRxEEo^Yia*w=*D*TYqWU@b(^wToPBBE$;3ZR9sd=ZAG|@Vg9tx<g9KM^l;A<^)ImA"
        "5=nXcAdok_aopvA4TIv)3AoQID9WbA|+=MNEMf=*w`;9H)jHYky!#=aH-IykEX43D+5d"
        "SmE`vHBXsMk=+{1;e4AG}4}Khp;_o5cS%_5B@kF}A&sG4Mhw{e{k9*v6th=VI?S=<`*?"
        "?MdAIl>a~2_h@uY!nUWA_b6;KllsqLES^Z*waucQYZlL@{b#~2N%L#kRAg+<+9KW(<Z{"
        "~eGxBs&kIq(69)0r${rWw|^vd;OpFlaMHj8s5Z7EP^*(lbn*!=U<<G0x5(Kd1JqFpy{5"
        "qmgoei)lPi9P>~e!H9Yok*R&jP4i7cLC+UK$%<Ury(1}o56VcAKVvE-gWfH9QyfT%GyA"
        "kpT_=&Q_dZvA57a%zz$(OZY1A)#>LB&<6sZQf_DvVTY~-mK%JNaPCM;jjJXGp=X=<Oym"
        "mYFIRkyyGDq&D?G4P;JE;3obX|d-4#x0Ebc_whAoU#17<;ir+;P<DF6^@}dI!-D3fs=0"
        "FGpgJvq?K1_qo{R4(j_LV|E$i_ogjkZDKxsk9MtQY))+|z2CQ=iRAPRC29ScwvVCicVe"
        "Sev|}yqb+}uo=S*}=W==e`shnrp=92VBww9#x-;9A*%Wm&w(!NT2U&o%8Fn3=f{5JY^;"
        "d=33qI~+%-;uI+VJ_@N8!m#c<G&H<W267YzQ;G0`Z{1t+4O&~4*3>yim|FL#YW#^oGru"
        "VpTj2D%lSTSUe!{vtNJ*$T1K5;qwcRG!3qciw~;ojLH-5u%>4s5iT73PHkEc=4L>IAC-"
        "_^je-;~qng}m3?^bV?V5innn}ffnA12c-#)!pya=t_R7{Auf7<Z3R*W&)-yjixDKNY*K"
        "rOmIc7w<mi^sCsQ5y`xEiuB)k*kMX}PKCDce-2N<%f!7JjupapX72nu?FWy!s~(8v+sn"
        "A0CoCZDRs7BP-$d?%jaW~d3COdMS20d+#df!0Gv<do8oTX{z0SaPtj+d~*o}43S%mvlx"
        "Q{iYm9Px<+hL<9)^4`}c{;ZIQn;?-{|4L$-y&=V_WdsM3C4|LPLIK^M`6P=fO+QKM%Wz"
        "2&radG$C$he`2zNQg|+^7ps?#8?3rP`;TvK>kY{}y1|x8vMEottpAgSDv);l#l`(cbc4"
        "utaKVl9&$XdZV63oY4Xk)H1pB9c4cL7-YiZfy@Yaz^A%a}eu?1}Z_UNc^tn^`08Y)d+e"
        "EBDOChVYkk=j_Jvne5C)<%0*rDSL9GvOrBP$M;3rr;-0u^dSAuG^Xue%)gD%?+f)eYi7"
        "DMne?`8a25aH9`_Wvio1tG!r#uMokNq}WsU3Qtw-8EvZ(S}KjnM8T_^^*=sk3b?B(t=t"
        "=^(~-`DE<+d5-^Sg*Cs+(#$9MMx{J7}cnlus=<EYnk@uL4OaK^d>`6&I9_szsEg?UHR@"
        "MOxvs~-%QpeywOX0N2R}!k}78b{hdg2%6qeFeYcNP=BxG=q&dMRJ>K7`p)2>1<a0uj9h"
        "<9+v&6SYerIRi3RaZM3Ral*PO5v}^H(JGOSN;6{x+vC??RgUkgh)EtY_9Kez#wK2XopA"
        "^ZiM0<D$OG+Y{aPar>&h?@5{$eJ%H|c@vd1=IZ)T$F#R)ef=)f8|y^k9irARNo_OlAPZ"
        "XjQ@yOSby^+9rL-~cHauH1s{5_a3Dh(6k2Ag>=C>s8PkPpT3-n=<eZ2!Q!%aPD_a8~Jk"
        "di0vo1&fT`i-PH;d|TLce=;8_MV<2!BY^*y&A=Bnj_YmbHsaVjyRoj#2z|V)Q)q-8#Pz"
        "l;d90Q?o9EXY?NSM!uBKVfVtw=6MkPKXZV@o;8!0b?!iV;<B30bt~f8D=Md5yihBb4&W"
        "{uS3DVs~`eSh)hx=2c1?!%fVoxR=cxRI5Y{I9&XYrqlJP*!?3-Et|vcFK4E~tqsIOi=C"
        "_ba%+hK}=Bh&^?#1mJufUDJ`*Ag`sI8_Is~PIP>a^gklqk6|W$u;-9=9&$c$3vs`K`=@"
        "|(eDXa(+9QxV%@cPc`r6=+<Xuf&wvi6p+IiyKwo+7>2JDZ{6K_}C!wI+MiF#(GSTC#;`"
        "(WHh5;g%2!fnr!;Q5*2{(7bar<49{!oeN4O8g7ab1`YYMA#*yo4iWAFXR3S?%$#RYq%R"
        "{igooo@uv}X6aMSwi8X(f1b3CCx(8i9gnQ955BVnP7m{u%=^sY_FJK$}u*Vymt?BP42n"
        "Xv)(mqW(=S|L?<emHm^?O770~d?`0%e0$GfS-F)`-0yXU<pfze>8nv&4TLxf=f(bT=W}"
        "VW(M~SxDbO+*6d5n=kgx^Th)n98e>Xqw!nwCD?twSfLzCy8TE8{y5ScNciFN#hr-%Slp"
        "-M{?ux5PbJ++q&tH=XTf>s`rK-9E+Wh!-)Bj8Aa%QxbeG}3lDt!iJ8YH&w~}@SVQW`&&"
        "L!QGu#m8msq-U*pEygLPtFn*&It(P1Hyx?i^O(jGoR483_m!}BcG#g=d2Ou@5#54GJZo"
        "@EyT5v?#tNgP2?KV<QItlkCZWFf!Mn)5M?b8@5lx8%Np^IA?$qOPQd>bx*8UU`$g({$^"
        "voDAl+HyJ!CEYy-F;bbK8Xr#JU{+<><Kr_r>J9jx^tdTX2VRIy!KxTj6@ndp8h%Kf30T"
        "{s!9j2)chtnn%#{L*kw#&oiX^75ZPoy^1<DB7;x|ZCg#=X8cX$YbEa5MzQh>#ouq8_`{"
        "f+r>zsUCvps7V;6EhU&pv!DC(ev5<Ip}yg#fH`%??WZh%F!^%T-BMlV?BlK%XKVqHMkh"
        "2;4v{E|9OBg|PZ>e_|kd=dFgbk{L1??x_PFYd3_OAxFV|F`IPWtO-Pqx&t=fxnfwzpNM"
        "Q=ja04N4`e7W$1dH^4FpN>?TnGWv`*!jihNs$K6fhs72z>B5pyGSc4XcyW=AIpZ*xVNY"
        "w85LFJmo-oIHa2o7d!>^xiSlbgkDATKz>XNz+#{)-ohweM_EmyqU5#C?Uh$H_AdJ%`K|"
        ">)ZIhyGXpdkrQT%zsm-3M{Zypoh@!XZlAIz;C~!F&y(f_{9oK4!KE9-`8_&sU_QP^*vH"
        "o}Hz;Q{b=!phRCNClIhHy21o@xbAoe82<0lz!Ll=u0wpgtHULxKU>TN9+XOG3=?n&6*t"
        "aW=W=9@v9v2eg*=1q%u`x8H&_@fr1gLvHPIQ%Cg&m{j5xQ{0etP_!+X%YYO775O85%&`"
        "6@&&@cy_memZWMJHav||wqx`AF`z>Ovg3D%$cRM=oApM=_1^XWScT<l!$Ol-Heu|#?$e"
        "-YU6s{-#6Ub%gypjAbBEg=qQLGiX!Mm9>tEt;R^KJV5MzOaLcMoCr!bt3}*AlUgTq4e?"
        "xX<1s!P!grHsQWtiKt7LNHAxUID8+iX{5V~xa*Js-^P28bC;Cv0^RT)^Q9%?H<IrS!e@"
        "u~WysoxB-rgCv3Gn({7DaCr-#Iw)GFRr@wc(2T#me?Roo8x?{3_evBp0@o^`F_<hIaXe"
        "7A?q5&sv2O~Stm-}2M9i1*k-;)3-g`lj;z{ry9t_95*m%4#F-kEHKF-vssmd$%z^mx_1"
        "7QfvTc5jJIxs4p&M{<KMO4*P=F+SnVkQ5N5U8B0Z7!1w(J#Dn`o^4_yloO_q@Jw;yirl"
        "j0u#QUZH2avv<;{"
    ),
}
