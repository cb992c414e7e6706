"""Frozen tables of the normalization of each character.

All tokenizers use the same tables, so tokens do not depend on the version of
Python or on the tokenizer. The tables were generated from the Unicode data of
`UNICODE_VERSION` by `tests/helpers/original_tokenization.py`. Two are stored
below, for lower-casing and for stripping accents; the others are derived. They
are run-length encoded: 6,039 runs cover all of Unicode.

The entry of a code point is an int32:

    bits  0-2   kind: treatment of the character
    bit   3     ignorable: skipped in the search for the end of a word
    bit   4     cased: a letter of two cases
    bits  5-12  class: canonical combining class, by which marks are sorted
    bits 13-31  delta: distance to the character that replaces it
"""

import base64
import functools
import zlib

import numpy as np

UNICODE_VERSION = "14.0.0"

(
    LETTER,  # part of a word
    ALONE,  # punctuation or an ideograph: a separate word
    SPACE,
    # The following kinds depend on the neighbouring characters.
    CONTROL,  # dropped first
    ACCENT,  # dropped after the marks around it are sorted
    EXPANDS,  # expands to 2 or 3 characters: `expansions[code + delta]`
    MARK,  # kept, but sorted among its neighbours
    SIGMA,  # becomes one of the two small sigmas
) = range(8)

CODE_POINTS = 0x110000
PAGE = 256  # code points

KIND = 7  # bits
IGNORABLE = 8
CASED = 16
CLASS_SHIFT, CLASS = 5, 255
DELTA_SHIFT = 13

_HANGUL = range(0xAC00, 0xD7A4)


@functools.cache
def entries(do_lower_case: bool, strip_accents: bool) -> np.ndarray:
    """Returns the entries of all code points.

    Args:
        do_lower_case: bool. Whether text is lower-cased.
        strip_accents: bool. Whether accents are stripped.

    Returns:
        int32 [0x110000]. The read-only entries.
    """
    if do_lower_case and strip_accents:
        table = _lower_then_strip()
    elif strip_accents:
        table = _unpack(_STRIP)
    elif do_lower_case:
        table = _unpack(_LOWER)
    else:
        table = _unpack(_LOWER)
        keeps = ~np.isin(table & KIND, (ALONE, SPACE, CONTROL))
        table &= KIND | CLASS << CLASS_SHIFT
        table[keeps] = LETTER

    # Read-only, as the cached table is shared by all callers.
    table.setflags(write=False)
    return table


def pages(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compresses a table: most of its pages of 256 code points are equal.

    Args:
        table: int32 [0x110000]. Result of `entries`.

    Returns:
        (int32 [0x1100], int32 [...]). The start of each page in the second
        array, and all distinct pages, concatenated.
    """
    different, numbers = np.unique(
        table.reshape(-1, PAGE), axis=0, return_inverse=True
    )
    return numbers.ravel().astype(np.int32) * PAGE, different.ravel()


@functools.cache
def expansions(strip_accents: bool) -> list[str]:
    """Returns the expansions of the characters of the kind `EXPANDS`.

    Args:
        strip_accents: bool. Whether accents are stripped. If not, the only
            such character is a letter whose lower case is two characters.

    Returns:
        list of str. The expansions, in the order of the characters.
    """
    if not strip_accents:
        return [_LOWER_DOTTED_I]
    table = dict(_EXPANSIONS)
    for code in _HANGUL:
        # The Unicode standard, 3.12: consonant, vowel, final consonant.
        front, last = divmod(code - _HANGUL.start, 28)
        jamo = chr(0x1100 + front // 21) + chr(0x1161 + front % 21)
        table[chr(code)] = jamo + (chr(0x11A7 + last) if last else "")
    return [table[character] for character in sorted(table)]


def _unpack(runs: str) -> np.ndarray:
    """Decodes a table from its runs."""
    packed = zlib.decompress(base64.b85decode(runs))
    lengths, values = np.frombuffer(packed, "<i4").reshape(2, -1)
    return np.repeat(values, lengths).astype(np.int32)


def _lower_then_strip() -> np.ndarray:
    """Computes the entries for lower-casing followed by stripping."""
    lower, strip = _unpack(_LOWER), _unpack(_STRIP)
    codes = np.arange(CODE_POINTS, dtype=np.int32)
    targets = codes + (lower >> DELTA_SHIFT)
    # The second character of the only expansion is an accent.
    targets[lower & KIND == EXPANDS] = ord(_LOWER_DOTTED_I[0])
    table = strip[targets] + (targets - codes << DELTA_SHIFT)
    table |= lower & (IGNORABLE | CASED)
    sigma = lower & KIND == SIGMA
    table[sigma] = lower[sigma]
    return table


_LOWER_DOTTED_I = "i\u0307"

# Expansions of characters that are not Hangul.
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

# Runs of equal entries: lengths, then entries; int32, zlib, base 85.
_LOWER = (
    "c-rk-O^g&p6z;0-p6S_LpjcgCcTq?F1V#k;m#7RF0tXdhKqE*p334$p!Duv5V>aPpqMXpggE1"
    "Qqo;`TbNa7F<UiIo})Pp9QAd&dD5XP?USKHsbsh;T`W?&ZPQ2VOuRlR!k-m6!yUd<L9$B|S-S"
    "Vjrv7}RA5+9tx{0!~ny7nTR1&1Zd*ikG5~nQuA4d{|acJxDpvLM`$(kMGCgW>~lE0qv}^mMO="
    "$Dfffu6Pu8C_}<G>@;#8z0fLiZskWglE%xhK?8`QODYR*Sy80IRRzHP(X`WSBiecHZKy-dLmw"
    "`{{kFpMQVfNVuYSVGtrWEI83F^Z%&SiZi;n2qvA#NNah`#7l!X6p|zop~R#g=v5PyX-(&ASKY"
    "ci9?NP|@E@Aa<1?55t3zOF-@8gwt!;Wr<k>IICTvF$6Lhg8oYg?t$?h_}6=B%sA7BE{`!^?g7"
    "q)HQx_yC{Iqq2l^hHe}ujZEdJkPu?^%u4|X7l7v25@K|^;d)6*_yH$LDz3*CEwKjdc@`_6&gO"
    "IY7ZkcVuchx_RJ5Uda7YVeQ4ym{iYz+`_6`V;_f_}mHhA;3N-Tilnn!QMc9`mh()z+45w8QXa"
    "dbf07PCSk7!ASZJU>-r)#CdcetlK&AF9!qSkCuIZ+q{kyfPXg3^UzLrq$^_w_B|2*e-pBmYB-"
    "o^eWx(e__h#KL(}S+BVmLuM&~P91TSeb*LL4ta2gY|Anf}P`-=@B^O?)AVMh<Mu_^CY1rQ06}"
    "%cI20mV~&=hr6}$Va868w<7aBMn=0W@fzya`2L4s?GpC;Zs4~-Jd~hMK*i8q1hU~a?1J6s`Sw"
    "D8t)J6_xL{CvPznPX^o<?@%lQ$oV#BwiZN@H6plOP4IZt_h$+g5_F7vP4&jyw@$!JMS96wAv1"
    "uQO=EN(FI5Bk^<c18@b`+$W0Sl>pu;H50b%j05m2IMl_D{Zoq5Zn6DzLa7X#m=R(BI;veg%3m"
    "&Pw4WVjC6b$&QQ(s`LNG2I#WD459j19qqB8O7w^N8o#TT$b^ql!a&2<QKC@3-JiHIuOgvv9+u"
    "96qow=KRE}G|&5C@J}?%KX3&vt_Ge;oM_|5V4LI9Xp5#t8R|7u(|q@Udlq>(aCMw%ftO5tf5k"
    ")x)=uJGtC!&f2|;W$b6@yQ0N=LY~RV?6GkcZyY4t(-2chI<H6J&dlkrgTBit7Fh)T68(}bXSR"
    "s>T?x6O{p{S8EH@TFuEQf<1>{|}S#mi@U%;D=0NP3Mo1lDEiD(ocR@6RYZJYPb(PyH@Jk5jg)"
    "_IDN-VxEbDvOnJR8)dL8cBG^mqc46<Yiq8uR|8OCH>aG_6}plZ=$hJ(f1g)ArXDgnsbfd$0VC"
    "I^lj`%pTp~^R0!`8e4Xij3A2Bh0)I)w`q&8fm`|zxJ;4VEUS#q!amIS~eyoU&i91fS9Ls)!FV"
    "dJ_$#zZrZt_NFMZAtrXe}nzUJp6cx2TWFXXe3XFemN;ZEo}YEZz#aJs<X;;bF5S2HFn!YtQnY"
    "&fh8yvs@pK?_MFegWbi(ST5P<WG&>2HP4s8SMj%5pXKmOIm+TQ&ypw9^%=tD7=Ag7IR^9dJl#"
    "st_me5(+fyJb56%qZGp<;2^DmQ6E>henEj~k!J;!Xqv%LEZk<I0xPr%+R%-SAdd1@E<JtrD-r"
    "Th%s2szJXkl*Ki_U#sD6y|OZS@b^_hl|ENkfXTzj2H3o?r_xpgcq%E$Ij?`3iiVun#*VQeoe-"
    "5H}>!q;r5c>FSGRwm*erc-p@uF_vlNbk$jD<6(NTofW75OZ+gr}wEk~J{3deHV$;%M10xCV?)"
    "%vO2pE1PvooLVebeu#XncPgXFj*nZ_Uqk8NF+G<j(?j-!ndZ3Gk=uN4(e%>b%U)!0*xoo1DAr"
    "iHP<Y5x>FdxodvZe*^jDRm96EjsGDZovr3Keg?iKBf44%wJ#!j`tqTWzYUSzfA)vx_h*G{Q~L"
    "pRL(b>%ITY+|N<#<gD&&~=QSc@$VT_Tp1AQFo=KwAMd?8_sncE?#ppPmpY&hopRKF9}(REn6Q"
    "cuK{Cz{);<8gf&>a{}HKm4vRd~H0cS2Qi4r@yBsh~`8xf91)>dJ?WU**vxqw>i*0S1%)-gnGX"
    "~8&9>Xp*{as?|b{I{?XliS2^Iv_B9jI4!;pU{aam42cdj|)HIEc3oN*R^+P|ZrWVI-RWI_>)5"
    "d>B9#+-zl!K4jm(TfCkJ`ko(ZSTeb-o8wv0iV~(NN4+pV*F*pp!et_lm*!vp`|A$8+;G%HuR_"
    "Zv`C~i*cJ^Fkrt)<guM&X~*wUn=wgvTmPVg`IF`-rI^zOMGAg8Swkm0bTYrwB_4VKMW661QtC"
    "eoEzzM~MVII3hFq2Np=*aRzsj;M<;;#M`cetJ%am&p9qyYT!Om{RC#2y^bb)R+_rB=yUg76Qe"
    "0IHm!$6VI&I2AZb2x|*2Cyga(Di{F`T#oh_&yod=W~SAo`i4wZidZco7=7U>fd!$yHV%9XueP"
    "RuLgX>*r}^^yw^wc|E%l#G5Wc9%$2$-Uzw-pu;29;EKnxoZ5{T10k#-fr10@7E36#7-tb-g{h"
    "BKObFE>WQ*H*j(wbxAYgJ`85!VjtyH=wuUYu3s)i+e}(roM8$Awu{sm`im2+J3&eWNq$>)FBn"
    "?!!BFn|xg3+lAde+r{*@*jJ>C?L~$dPo%sn2wTj)fOTlgd)#V1lH@zsYuV*!_p{$!&O~EAmN+"
    "q^Zk3Hsy)dJS&(Emou++l3{+`Q!pPW(E<1?xfLg$Sx#7DDrHLYoXbGemIYl<z}<i8!uoxU4)&"
    "a}ShW^x<1Ggp?D7k-a*TFBZ)Q)L*#-~I!Z2j=)BXv-HDT6`BQ@BK}_xy5`*axNwClQvhT93SN"
    "8H|3^Ojo#IgV4D~<Egzyo`xGhZ&c6$0w9_<uv)vvju^6P3Veg5I`LHzd6i)AR%%VjM){Xpg+B"
    "b@B__|g$fWO!2gx|D!>c)CSk9D4PuZtGGt6d%C-YprHQux|5x!Jo3cDlE+(n*~gFMADfgh<JM"
    "JKN;8@jvm*sWA"
)
_STRIP = (
    "c-rln378etmB;US{knmM04_lU)KXg972LsvLRwrxMpPUfF_}ul#3e?PD5x=7C@x9dMWZCqGC|"
    "pQG#ZncGNNL1ToWT|pc<OBp@9Z8N~e2%_3D;=ySnOiqZ2ige&6^1{&zX|+;h)e>MpO7QYxn*U"
    "`Nf}Kso3DdVw;{d9bIJ2~n!K#7GO#QR^(p$p19RwK1(&`aiPHe`Gs9E1lchU-?g{EB6KSSC$T"
    "Q%zw!U_xXa2fs)T~e16*Ylzj?4FM}_qjJ;A_M_zMhotD>YlIf=s!=93ao?J>eXY_w8+v!uZW!"
    "F!bZ`yf4kui{*ljWNC(A;A?%I=cz=fI5lkmbMaT|aZ%Ietx9NB75mI=w8>rjo=MEKBL*&tly<"
    "!0>5VVm!v}?^tA>XVqKLMw@fS_d92dk-QN<Em5v}BHkfmT;?+7P`JP7nqtrH8S||q#m6OWXxk"
    "|5*FgyzOALhZo+)#=B(aus(|aG&=K~UBD_%eL*X2qR?M#lZl9YCor1VXg)-U1fTw?EK`oCkwI"
    "L{^OOq-uMV~vRWd61zypO`CMGxY45lGZ=N_IzT!&Lw;lw>#;-9TMXs9=kbXZOSLcckGv)b-at"
    "w@8<eFD8)zll>RYoOMZ8DH|#Xm=}v~8Llf;hDlryHQ})m1SnjOr+9@%9a|wO9l>K_v+7bJvkK"
    "xOl(f_7RvFvU-ezIX>NydCFF}~Z!Ci*6}sY{B_<GwvBqfESx#%V|Dd7E4>dl&hpmL~j|&)_a8"
    "eUa3aZ^JjSRNEY{*`18~OO3XC#rRg`Q|7)oZ{lxBN5e-YdOqikZ*?xQe#O4}n&xlhqH>`vKht"
    "TK=9-V`URuY$={hPBZS0fipWepY2-!}|qmG7br<CzyuD^Tfwwhz>N}a!#j*l_c<y?`yTI{RWG"
    "uG>PJV}v$kH6JrMmW}C8D+|hzAr1X4x8)afW%mD>lq;JoL+2y^<`~md7`bI68^9f>$R!#=#+0"
    "xat_Adr~?yzGS|K1jWN<uqa<UWZ`ztq^l@D0^NF#RwFd6}1wK2q<6jr~b{~9ZC{v%$ea;to&G"
    "~1w`}4SC{a0>(?h9_ad56_AvDex;ai7&Cv3Dxhc{$_kJH*%r<&FJDzQ{d|nSVse8R@%5c*m6c"
    "kr0O`z6&|yp3ao(m2v+d8Fzr?8T-Us;>?hizE`4-{)sYq;|*yyoqk+C^5tndzK6EqUWsfQtmQ"
    "48za;jHKA&_*_~3HmZX&)549gy3?8W1=|F5L^-A%cXS6*bibxG9mS&#2e^L^@(xOYk3L3REoZ"
    "c{F0J_rr;ca6>w>I|hC@=@NGBx?JACgz`cM;^+JFvf4Wq~DS6npj6p(s{#E&Y0cxoG#0FtLbO"
    "lvE=l8?wry;mX_(CavzdQyj65h*f%s|4tFtZjqe2V#v9jRMb5{i8E5}4i8^AR)wZ%Og+7{efK"
    "un}*}flbM?2c_>Ay9(|07)`?dO{IGt@sR`Wf#vS$qDp_ubNrKF@lK46#9?d|&TD%JsgZgYj<G"
    "H)SuKd`G@FW$u}8`sK!6HfOxm#$|eEwCmpF9!&2EKhp7Kn(x!?t1!+rAwQ(|gRAtr$P0=8S3H"
    "w=GfeZ*z8Uv?-SxeD{Puf+A=63Qe}d-!(B*ECh;Njpet95epKre9?VEAeI97*`H2S7P;*4j$7"
    "w7bO+SJoEaW9|te}H^q3?6E{C6y-LOyc*wLkt~p-yfcMGs+kFKTq<UQ=-qGS^ues$J)gyXZEt"
    "h`-%BxntZ#A|8LO2c;|RF@dlDhd6O(pv1?>2XQr%gUyb3Lv^St#jJ&f_-e*jo_0i{x<5TKNv+"
    "ewp`w?@zhj|+l{TQP@<K4=<XSqGmu6)XWOv)2u-u(YT$He~u;yye$<v&j5e?)GV=I?uwc&FOm"
    "csJ{z!yQuA(QAsF3$y;$cXGx#ev~BcZ1h@nc|Nk~+Rjb)FJXI+I5LX6#=MLFJ5y@-=8TfaR||"
    "AJzMnZQWqyVFrVnqqww$+P<kR?kyGyR=dr*?_ZAW7amKyKJ@mqH2uW`D}(;cG!JmmE{(lN0P#"
    "X7nfZ4ARBN}Kv)hm8Iy{HI6v^H}Z6<8)ntE`O=f|2yfj9vvP$7WMs{eW+`{_IvU6b4j}o+WWE"
    "{?Y?VA`#Ai^wW+GK^T+#MNAK;z{dM<-T;bdupTA8G<y8i^Ceyb_S!Hc(r1nM?Y-m(I@PG@#pK"
    "HV&V5h{xUoy=y%A0Ai-p`}XLVPvhb=13xdTY=Ny9PV34O_5+gO$jw1+cd^(&G@e30ts&gB9ej"
    "As=>O2eu8iU<C)&$WgxsyRZv8tF=D}E5gBYWT@MNUD$zb*jgUR`OC-)ZGqjD+8)9-VGCApP=$"
    "^aI*+hT*n$-t1msogJi<0%3s!Kjl)Si}rP_w2+J>c(4Hm56U`b<S3+%!UY=?F%(RM6}>?ripU"
    "y&i~z&32b3J%^w2X%X}3p=o#!WOLH;N8Z^u6HB5!e8)b(iUr*|3u!~dJMcm`8O#4D&^lq2KHe"
    "4HR8xAI55&(*m<)_zTlsiwfxJGyo(*7&kFse(_$G9c8$38A>o}>L0>`FA4z{j+ez3X94w;#P="
    "0ab6Z_rBzZU6=^xy^ZUur$>5Vv1$O1Bqjo8cf$9=2f{wqDY6<2k}FYFnR;@;ulLc_EArXQ9@;"
    "Q0pe&CqE$WFDjH>*oSl1Zc2^s9dW*Q6t3L0Ifr*hAs6I#k2sDO%BtpRvCc4DLAY|a<{YL+V=b"
    "Cb;{8mwWfFD^>)d0sgVoLlfnNQbT*Luvb4s;Jb^PzNvk`f{LR!EEUaon*(?A^|H|ntn`#K!Tx"
    ">{bv<#b+XgJbG5$`{Jk<L~+?tm>QR`P--ucsgCz*VKO2BezzU4cC(zy`I!)J$l`X%NEuaW4$Y"
    "+>$NUiUz~8wBQIFnR3=_S!*$3dJ-HsnadWLq`SzIo9rD87Ez_Fi^@+ljC>RaKgGpc^s1EN}ac"
    "2dn1f#)tFbOQwcfi$}^K^AZNfeIj2*Z`RwtX`T_E5e$yl=@jeShQp!ng@P=x#pxb3@4dMk7BS"
    "Oe$$!z5-O{)7u@gS@-CCTt~~XW7^l(2*<k2agwD!E;l~kvizrIrSD|Y>@vrMX=fHE<&*ZOwL6"
    "aYRmE*>)=w!iaT{99Tg`EPwQAnx3TbIeA<z4Ox$`&XQwY8r>Z6bKB*$Ks?o#jhhFE_=PvQ4bG"
    "kZj}?1ztSx6}2S9P9tMY;1QS{9$8KzBQYZe#vLFwYBnb8%l%w8(P}<x5l(GrRt7`W^w117G+z"
    "j*YwHwa>h;P;_Z+$eR>|}<L^S@*VtI<eY+ve=UF~04bE<8t85FusbLLSey{G*y!_}d6(5&{?{"
    "?RyOq^EPt)&l=^Eb))-o|>GG0$3ZG~O$^Q)l;x$7>Gjuk3Evq|*!g2}z$D`HVFtX;(9UZReQI"
    ";*b51^6kkw<K;5a<8jo_u&JMHzfG~8e8x9X8Se;v)7sRhxc-G1-y}1wHGgJ}^?c&nm-Ssweiz"
    "&FEi1JisgLH7=D>^C*X(JwBW^bT*+=H}oR4HD)<@|Ljd6cTE8ontwuWWRIau9_Z07tgc5h&e#"
    "|oA1qlz|s*OTSKJ^jL7P3MJ=_y1a^(l`e+>o4nM{5u@L!B^^)e^R~jU>9~^2ex4wwqOMZry@5"
    "DIoO3A*oH0Gf)yN`h|DR-z%J~-Hf+HPR&Ws3S&1C%!yfFy4s62(+u(pY{h{QCwhh&`4UKGy*&"
    "3>CJ0Y^ohdtPZ9oRlW+jc@^TQCF}*n?fzf$h-7A=<_v+BO>**oB?YHe1_fYug5E+h8}eZLqd!"
    "aAZ@=YOuELcw}K0c0${Z*R~z6Z95Jb>h@q4c8-f|vSABWa6sMuvB<#gv5`#<Y{M3;;NTc!sM9"
    "+}+jLB1iw#?_f&=Od25FlHX`5ghwqO<J4<tXdX`r@gU}TdsFtW*pEm*+;b^Avn7uqr?synnp9"
    "a|sWFPs;#bvTS%a2WDOAqTs#1KY3#D>yim{3FSSUD$zb*n$-t3?Tmq@?jTtU^^vl!3qxgBTwB"
    "P?7|Lg!xpUI;1Kc;YZ=dy^I$j3hwZQ&tl;2a^0Co_UD$zb*n$-t97H}gd9XVmJKcfpFdtTMa3"
    "J~E;K6SHmT?ERVGCCMwXg4oL2w_kzymIDfDNp>$p^t*<O2`5zyWp`pFkWqzy=mj6C&N-o#X)r"
    "*uVnn&L}Uq2YtW;E^vSiETBMeJNdu^E^vSiETC?0-7f1k@<H%Z@_`3j-~by0*x`eujRo6&LLT"
    "sd3mjnoM7QY<(trbOU;%YUlf8v;{Nspi%}TR>Ym@x}w)wyVE^vSiEMyc2ZXq9dzy%JlZ)wVRf"
    "Stkt2<vgEGpyeOu|3w!FbHl!26(^)4zPhWj(iZf<O2`5zyUT0#*+>_-~tEOzyb;c*OL!C-~tE"
    "Ozyc~{>QFZo(L)`|EutqSzi=NC=l_s62(BR?c-J)L7y7jiY1g3>IM->Pgbci^Nx!;@9l(A;S>"
    "b(D$Uj031lOYbTCEqhfprye5R4^ntk$dlbrf*m^^kEvEbn2X8`=qc;8Df}4zPhYhVU+gcc~Yv"
    "tF}GaCfEkS6{LgUN*H(`=uxi{|2J&y%_C==^NZclR3zBkcT^<y9_IcfvU!B|P4zbAFWVN)349"
    "wg=zB1I|K{jFQ99dsR&f$>zj<7|r?)lBSM`nJKebJQr?x4#p?R5@?Z))<(C)B4SI6DWv}3E*`"
    "(g9Dx!~ubT6t?qJquas_cKX0??8&3W3uup^*vy?9}Le6Wqq>GWuFWCpD=8{ADtzoc^m#ev?)B"
    ">B-<fvI9Hf=R>^cTt+lgXg|r-l`6BgYorT8tZke8ScFH<$ndk0La{f*$mpn_g<=!-(F)#D2<d"
    "+6Ftc}tysuSnG){A<oPQ0tYQ?=qfx>kZwHR8RoMO>gdt&^bVW^wPV5x2uSv36T8&h!o9zp_z+"
    "M>mP}=S||*ZxVMyo%p-eitpBn^S4?F&e<T|X!6T9OVDeJ1T)r(^_3b4j-`%0DE|oM9wz-JbS|"
    "zH`@T)0I@XDM_<FH>5MH`T>;>z@|2_8IS}WF|4PtMp6YC}P?0}vlu;=^89!{OTH;DTL^)22g)"
    "<pD9qWsV5#QyKi;t!(@4{Q-@?FMl=ZWQM>aQY_kj>fLZTf{q*c5ki`>&bQEo=^Ez8^!I5>_+O"
    "lj5a-vj!o3}&Cn0nemAx}Su5&V+W(7<Vn4iDRR0=LlvANyU2DYeNgnlBXX2M%Q@)aR9lT!roh"
    "f@bKL7bzQKzpH`z_j6i7&=s|B;lfqfXlAEFyivT5-RFAIH)DvFOHk_7d7W58Fm<5@#RUcMAD0"
    "VB<IO`GECe9ZdR(>m~Tn1_>U+PYu*lj^1FsxR=uI-D&s!b%j3h4@TcPpaIOpmRs@VtF&(mWyf"
    "z8rw@Je2>zLZ@Aj$@XEObM9QnVczF*L13cI>e=QqGS`rv)?zD^&MZ502f*!wO#7vEmY7<j#o{"
    "z7Lrd}CqH`S^PUeO^u8p5#rU{y*a1LFgKSZ_lLcKzuS8`=>D$Pa<#JI#I8z6VImoXM^7(^9F6"
    "|&e)u?S-g4h%e3palxf6{#yU|ReY1joeULG|e685SsAt4Faehc!I%2bI5bG{{{%!2|3x0WOi#"
    "QL^uG=?@-IF#yflr>ppWmh5Cepr>u<3i~ev@(+Qvd7JxtV_Iyk5KsjHf>mzL5HEpg*S3&reX-"
    "dTf3H{~tj;_aWbjwhzM(p&d6<ZYJa6ZR&CG2V=pzp0>@ye}Ba$=73XAI~Zf`{*-wT-%!@B$DX"
    "s$H;y@SKW!h*T)hw57oh7J^fWMrd!b|Ra13H+PsZ4rwc;LtO%LFoebC#1eo**!0)5#Ff1HbKf"
    "5PYEm;12yF~;m7#_z40#oEYxdXRRlWNeP9Df|b<eo^yn>kDjsNZa?q_WSWsHSJhUcn#rN?3|2"
    "_k<5wt8>2GUZ7Q(etFFM#9~cAgL}Bl3WZ$8^OY!IB%-y$0zngxYy;l6UsGolHccktf%!R(R;X"
    "B}J;y1%SKKdX0d*Zr6Uk8jSoBj{h!0$7s7^~_EeDq_+*&=-YEqsE%oS)O?>e_-|)iL;L5jHQu"
    "_N6ee0@8q6MVnT^e+Q+^{ew1&_XGSkhIai3{F=1KiPz!(5_}BQVDJ|6ZsjHkcB(71Iru95Fp_"
    "pLMl9x&b0_U%{93<d+&zP>-S-n`Yve0`41Qfro0qH=?-AzoJNTdqW?nnp>A%tVVN^7yLSOh#g"
    "Xh89<h>J)71DQR?)-%I1CP0@9@X>hZNjgS7LfN2@pZ(v!u{|O>xpwTd=7jq<Mb|kcQ-y`ez<+"
    "`TLu0)3*WIe+c)Dk)<tIy;dj6ztRZ!z<?!DQ8$_{oyTjo#@#SUVx=MUJxEcJIv<dk49(W<+Ml"
    "q-N!mk7I;aPxr=G{%&G{(<P;kw6|d;oqOe=cUNe-|kH+5vy&Sa0}-SRg26ee4EyC44gZcfgO6"
    "&p5N*Cq9NTb|ZdgY}vnJ4n4+N!8#JmB;0WebB*~ldv9@P0c#&|c3sU{2xhEiOz$uD-~+|IzP~"
    "uPvqs*(<>S4Pdv;Z2_-A?N+^T4=bas{Ufd|M__Q)z_0W~tpZwuR}Q+@<`VE>G&<Q^dHZn>>{{"
    "=VCJM%Z4xeOq}eYVE8cs`Wjcxwp$F_DdB;UCBLU+S^2Hds)-Bt-bRn^CaUfCTss@?r~e}>Fwt"
    "4R-tUQYW_cle9C)z*4wA~t|>+Kz2^H+b;cWUvA*gj&C3;g3#v}>NsBjg)pdD4N#7@@`LWnrNb"
    "1`m=b%z6SQgb4EKB-3&Gu5yUzXM{#m)m+Z*ut}K5R{{BI8_>w5ilOeOdC&skO0CQRKbJ^mp8*"
    "VsCnBbD^#Ee$w+-a-8McU}M&Ma9h{biZ;Fhw{}*1-t?I<=TrY9;SPVPtasBJ-Z1J7<9!oraB@"
    "8^^@qHqioB<{W@Fm9_LHz_S8MN>?6apy@H_~)Z<V+;)5O|3O}zJ~iPJbu?5@*A?KoY$-qXeHI"
    "bG~~CX4r6l?3~cwl8V>PZ$3{(jTef{54q|;_49c9;@PvNB)56;=F~PLy<X*FlR`04Ee_*_W<%"
    "k30D$66<J_CG+FGC$N}$c%A8C3DDXAn=fk7H1>i#B7g6^`5xYPQUdA4MHfLPISEA#BWnzz+E&"
    "*_^M%Qid_3$|AxhaZ!_oL%M<bQ?Sufb&Ez@CQe40tAavk5OI{2Kr}KIIl7dnCNm49@ZB+X6nI"
    ">`H9eh8%FqXNYt6a#5iSu)jP*yj=+QB;A@J>c!=p^OlP}fbdbI9Ssg9Y|oJ3waMbXF<F8$kw2"
    "Go;2uyd{>A9I6q(CNyBxWZ)#81R@b?M7i~cJKS4|e{M>E8~j<j2e-!Mb0nbi_J5V3j)UB3hmq"
    "h|)Z75Ul7EkOPW^#2ZQqaXHI!MTY3UPwByo<sHp<eaUX87Mn)1@^5F|Dd^?>!=%8WmCkeTqX9"
    "toEH`oe+RivQ^a2iuOz+--8FDM*l7y;P2?NMd!D-TGsWI{rg*>y4p6<|KE$n=66`)xtdRFcZe"
    "Qepe*iKEk$%KXaR(D0O888|r>+!t1ac=McNS&N0i)6Nt(D?@hct(BUqkL7Y`X%vvBZB!*)ilD"
    "K1G7Nkexu<>Xn>Pkb4fyChZh#ev<T)rigRG6j9-v0AYSWdhpR4&ZSeCPv~4k95}DRuVCAGtHk"
    "*#<(5;&pQx*rye-Im4}WciS0Ph6OZ<PQj?S~h-es03YnFIN&7xmciGLhv7mzoM`1|M@K1<w7u"
    "=TWA;+%!tIg~wgHT_*Jmd&2~;#p!{Mf@uCTtoO$%H4p>E#MBqA>W1$!s;$?BYX9mNS}nR8OYy"
    "6`<_JiZ;*KsJ-;OHCCa>r+^gt+i*PkIRlz~1gSM@t>^kB#l&d3eT$Na*v&G+cjriS|o2Rc4wI"
    "{q6X?xG+Y_*1QJzLblvn6<Djd*`uBlfAY#U2jk(ALwCor_*zosawlv&FiQw2LY81MqunypA-7"
    "Gy1sM;#>mXg6=Mi%Zc#IoCRN9D?z|{@Gt0CJVo3m(EUDg!2gK6zjHQx8ePEl;U&l|Lf2C2UxW"
    "U0IV%U$y^4A_AXA5qiJT?X9Py`+H;eOghdJWzIEVhHKl;oOwL5X3@|+v@TPGF>1~4{uo+|b!>"
    "p0s{7C1epigP~kOXrBS&s0&DBXb#f-zV=`%3Oz@L#K-MQ{wl`5pN=V^i=VCaHj0V8S~hw;vPu"
    "Yr*6)k-m~a=4Vl-8U$R~T&hE~8=)8&fxP-K0RxvlIXC=06Bt8P&AHaJv2NzQQInJv?7>_3~-n"
    "z~e)ord=f0!rUDD1Z8inGUDarY#xg0-&iT)r8|><#vx%e<)-Z$I+;lRt1SI>;xiDv6&0pH2BA"
    "37<$Fuug){s1^UJS_v-Te0({!TtpghFQx2I&c9>f+2mhI{bR`YYsIPtW2cIDFFNl-{(kfV`yt"
    "{Jv11ziC~MMh&@&T$ocL4VM#?XQ7oqcJ%D)K%o3pgFj4<$SM`k6qeVuR9dz`yBllKs54})I#q"
    "3=Agj+!UV2*T%bzCL#z-zLHr&J%UTJP9~+JA5Cl>yW#ayc^(vZ{tJo^m&DQ95=j!dTXBeRg_y"
    "n`qc2Q11_I0!EW=#-f_P8L+0bB`Qi=X{QU#sTUb-Bf-kQVw}JkfNO&x3{G*gvQzuTIb9q<3+u"
    "f##|2xu#5bwda{7lZ~&&(GWSkIx4GrW3lzNmi4R#Vp&@;*Sm0ewfa2dLm&zUKn*hAqGc;2hFM"
    "O%rv=0_M*a3C?3*u!M7dBWL(-d<P~h5OpEn_g|0?++R}mp#|bRynyd1eC^h(^KHD}`Csu!$h-"
)
