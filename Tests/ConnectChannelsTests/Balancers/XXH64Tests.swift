import XCTest

@testable import ConnectChannels

/// The expected values are those of the reference implementation (libxxhash 0.8 through python-xxhash).
final class XXH64Tests: XCTestCase {
  func testTexts() {
    let table: [(String, seedZero: UInt64, seedPrime: UInt64)] = [
      ("", 0xef46_db37_51d8_e999, 0xac75_fda2_929b_17ef),
      ("a", 0xd24e_c4f1_a98c_6e5b, 0x393d_a8b7_8992_279b),
      ("abc", 0x44bc_2cf5_ad77_0999, 0x1318_df30_094a_85fd),
      ("message digest", 0x066e_d728_fcee_b3be, 0xa12e_b2b5_2cde_838e),
      ("10.0.0.1:80_0", 0x7504_1381_e737_1a08, 0xa2a5_71fe_7c15_4762),
      ("abcdefghijklmnopqrstuvwxyz", 0xcfe1_f278_fa89_835c, 0x06e8_b29d_2627_8bb8),
      ("Nobody inspects the spammish repetition", 0xfbce_a83c_8a37_8bf1, 0x56db_22dd_5b05_1147),
    ]
    for (text, seedZero, seedPrime) in table {
      XCTAssertEqual(XXH64.hash(text), seedZero, text)
      XCTAssertEqual(XXH64.hash(text, seed: 2_654_435_761), seedPrime, text)
    }
  }

  private let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }

  func testLengths() {
    let table: [(Int, seedZero: UInt64, seedGolden: UInt64)] = [
      (1, 0x1f25_c8d0_bc1f_4bb6, 0x7982_6bcd_749d_267a),
      (3, 0x31d2_363f_52e5_64c9, 0x78ef_d775_75e2_6575),
      (4, 0x9bb6_4b7d_66ee_9fda, 0x6f0a_6c97_d68b_f353),
      (7, 0x9a7b_1499_59ce_60d8, 0xd97e_de93_c9d6_6a0d),
      (8, 0xdab9_9d95_c6f9_0092, 0xa2f1_e284_37a7_8a1b),
      (11, 0x7a52_cc94_57cf_1a1f, 0x8d2b_0d24_762d_2b6e),
      (12, 0xd52e_4078_33af_5133, 0xbcc9_f0d6_16ff_9a7b),
      (31, 0xa2aa_5f33_cc4a_6119, 0x7554_3727_1d1d_0a84),
      (32, 0x23c3_c17e_f790_fd97, 0xbf62_4b93_2c09_0428),
      (33, 0x50a7_cfc7_ba58_8784, 0x7ace_af1e_9d34_ea35),
      (36, 0xc0b5_2b0d_cc5e_3f7f, 0xc214_3dc5_8c00_7451),
      (39, 0x880b_beea_606e_4b37, 0xa516_4dce_0413_0ff3),
      (40, 0xb620_306b_253d_76b6, 0x3b36_66e2_50c8_3a50),
      (63, 0x5e3e_54b4_31c7_493c, 0x2c8d_dce5_c85d_0d9d),
      (64, 0x0eb6_4b3e_f6ee_b01f, 0x4af3_41f1_4e3a_6fc9),
      (65, 0xa383_b724_b2bd_12f1, 0x8e9e_5806_4540_0102),
      (100, 0xa61f_8d4c_170f_e531, 0xf6d8_f65c_625a_bb4f),
      (128, 0x46fb_cfbf_0150_793f, 0x60d4_184d_d722_fddc),
      (255, 0x39ae_55a2_9989_206f, 0x8310_ff6a_20ca_dfad),
      (300, 0x2400_04db_ee0b_a6dc, 0x4724_ccb3_6f2a_ee62),
    ]
    for (length, seedZero, seedGolden) in table {
      self.bytes.withUnsafeBytes { bytes in
        let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<length])
        XCTAssertEqual(XXH64.hash(bytes), seedZero, "\(length)")
        XCTAssertEqual(XXH64.hash(bytes, seed: 0x9e37_79b9_7f4a_7c15), seedGolden, "\(length)")
      }
    }
  }

  /// All lengths from 0 to 300, each with another seed, folded into one number.
  func testAllLengths() {
    var folded: UInt64 = 0
    for length in 0...300 {
      self.bytes.withUnsafeBytes { bytes in
        let bytes = UnsafeRawBufferPointer(rebasing: bytes[..<length])
        folded = folded &* 31 &+ XXH64.hash(bytes, seed: UInt64(length))
      }
    }
    XCTAssertEqual(folded, 0xa86e_267d_7c3f_603d)
  }

  func testUnalignedBytes() {
    var shifted: [UInt8] = [0]
    shifted += self.bytes
    shifted.withUnsafeBytes { shifted in
      self.bytes.withUnsafeBytes { bytes in
        XCTAssertEqual(XXH64.hash(UnsafeRawBufferPointer(rebasing: shifted[1...])), XXH64.hash(bytes))
      }
    }
  }
}
