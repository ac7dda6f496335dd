internal import Connect
internal import SwiftProtobuf

/// Imports that a set of files lacks: servers and compilers leave out files that only options need, and the files of
/// `google/protobuf`, which all runtimes have built in.
enum MissingImports {
  typealias File = Google_Protobuf_FileDescriptorProto

  /// A missing import that has a type which is used.
  struct Need {
    /// The file that is missing.
    var name: String
    var importer: String
    /// The full name of the type.
    var type: String
  }

  /// The same files, and the files of `google/protobuf` that these import and lack.
  static func supplied(_ files: [File]) -> [File] {
    var names = Set(files.map(\.name))
    var all = files
    // The files that are added have imports, too.
    var next = 0
    while next < all.count {
      for name in all[next].dependency where !names.contains(name) {
        guard let file = WellKnownFiles.file(named: name) else { continue }
        names.insert(name)
        all.append(file)
      }
      next += 1
    }
    return all
  }

  /// The first missing import whose file has a type that a field or a method needs. Nil if no import is missing, or if
  /// only options, and what the compiler does not care about, need those that are.
  static func firstNeed(in files: [File]) -> Need? {
    let missing = self.missingImports(of: files)
    guard !missing.isEmpty else { return nil }
    let known = self.types(of: files)
    let byName = Dictionary(files.map { ($0.name, $0) }) { first, _ in first }
    for file in files {
      guard let type = self.usedTypes(of: file).first(where: { !known.contains($0) }),
        let place = self.nearestMissing(from: file, missing, byName)
      else { continue }
      return Need(name: place.name, importer: place.importer, type: type)
    }
    return nil
  }

  /// The same files without the imports that are missing.
  static func removed(from files: [File]) -> [File] {
    let missing = self.missingImports(of: files)
    guard !missing.isEmpty else { return files }
    return files.map { file in
      guard let lost = missing[file.name] else { return file }
      var file = file
      // The lists of public and weak imports are lists of indices.
      let kept = file.dependency.indices.filter { !lost.contains(file.dependency[$0]) }
      let places = Dictionary(uniqueKeysWithValues: zip(kept.map(Int32.init), 0 as Int32..<Int32(kept.count)))
      file.publicDependency = file.publicDependency.compactMap { places[$0] }
      file.weakDependency = file.weakDependency.compactMap { places[$0] }
      file.dependency = kept.map { file.dependency[$0] }
      return file
    }
  }

  // MARK: Parts

  /// The missing imports of each file that has some, by its name.
  private static func missingImports(of files: [File]) -> [String: [String]] {
    let names = Set(files.map(\.name))
    var missing: [String: [String]] = [:]
    for file in files {
      let lost = file.dependency.filter { !names.contains($0) }
      if !lost.isEmpty { missing[file.name] = lost }
    }
    return missing
  }

  /// A missing import of this file, or of what it imports.
  private static func nearestMissing(
    from file: File,
    _ missing: [String: [String]],
    _ byName: [String: File]
  ) -> (name: String, importer: String)? {
    var reached: Set<String> = [file.name]
    var open = [file]
    var next = 0
    while next < open.count {
      let file = open[next]
      next += 1
      if let name = missing[file.name]?.first { return (name, file.name) }
      for name in file.dependency {
        if let imported = byName[name], reached.insert(name).inserted { open.append(imported) }
      }
    }
    return nil
  }

  /// The full names of all messages and enums.
  private static func types(of files: [File]) -> Set<String> {
    var types: Set<String> = []
    for file in files {
      for proto in file.enumType { types.insert(self.name(proto.name, in: file.package)) }
      var open = file.messageType.map { (proto: $0, scope: file.package) }
      while let (proto, scope) = open.popLast() {
        let name = self.name(proto.name, in: scope)
        types.insert(name)
        for inner in proto.enumType { types.insert(self.name(inner.name, in: name)) }
        open += proto.nestedType.map { ($0, name) }
      }
    }
    return types
  }

  /// The full names of the types that fields and methods of a file have.
  private static func usedTypes(of file: File) -> [String] {
    var names: [String] = []
    var open = file.messageType
    while let proto = open.popLast() {
      names += proto.field.lazy.map(\.typeName).filter { !$0.isEmpty }
      open += proto.nestedType
    }
    for method in file.service.lazy.flatMap(\.method) { names += [method.inputType, method.outputType] }
    return names.map(ProtoText.withoutDot)
  }

  private static func name(_ name: String, in scope: String) -> String {
    scope.isEmpty ? name : "\(scope).\(name)"
  }
}
